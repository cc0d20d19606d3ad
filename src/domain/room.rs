//! One room: its lease, and how it looks from outside.

use serde::{Deserialize, Serialize};

use super::{
    Campaign, ContenderId, FencingToken, LeaseDuration, LogTime, Metadata, Nonce, Renew, RoomId, SecretHash,
    WallAnchor, WallTime,
};

/// A holder's right to a room. A vacant room has none, and is stored nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Who holds the room.
    pub holder: ContenderId,
    /// What the holder shows to everybody.
    pub metadata: Option<Metadata>,
    /// Higher than that of every earlier grant.
    pub fencing_token: FencingToken,
    /// How long a renewal without a duration of its own extends it.
    pub lease_duration: LeaseDuration,
    /// Until when the holder may act, as far as it was ever told.
    pub promised_until: LogTime,
    /// From when the room can go to somebody else: the promise and its guard.
    pub deadline: LogTime,
    /// Who shows a secret with this hash is the holder.
    pub secret_hash: SecretHash,
    /// What the secret was made from, beside the holder's key.
    pub nonce: Nonce,
}

impl Lease {
    /// A fresh lease, from `log_time` on.
    pub fn grant(campaign: &Campaign, fencing_token: FencingToken, log_time: LogTime) -> Lease {
        let promised_until = log_time.after(campaign.lease_duration.as_duration());
        Lease {
            holder: campaign.contender.clone(),
            metadata: campaign.metadata.clone(),
            fencing_token,
            lease_duration: campaign.lease_duration,
            promised_until,
            deadline: promised_until.after(campaign.lease_duration.guard()),
            secret_hash: campaign.secret_hash,
            nonce: campaign.nonce,
        }
    }

    /// Whether the lease is over once log time has come to `log_time`.
    pub fn is_due(&self, log_time: LogTime) -> bool {
        self.deadline <= log_time
    }

    /// Extends the lease. Neither promise nor deadline ever moves to an earlier time: a renewal that was
    /// delayed on its way must not shorten what a later one has promised.
    pub fn renew(&mut self, renew: &Renew, log_time: LogTime) {
        if let Some(lease_duration) = renew.lease_duration {
            self.lease_duration = lease_duration;
        }
        if let Some(metadata) = &renew.metadata {
            self.metadata = Some(metadata.clone());
        }
        let promised_until = log_time.after(self.lease_duration.as_duration());
        self.promised_until = self.promised_until.max(promised_until);
        self.deadline = self.deadline.max(promised_until.after(self.lease_duration.guard()));
    }

    /// How long the holder may still act, for one who started counting no later than `log_time`.
    pub fn valid_for(&self, log_time: LogTime) -> std::time::Duration {
        self.promised_until.since(log_time)
    }

    /// When others should ask again.
    pub fn retry_after(&self, log_time: LogTime) -> std::time::Duration {
        self.deadline.since(log_time)
    }
}

/// How a room stands, as of one moment of log time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomView {
    /// The lease, if somebody holds the room.
    pub lease: Option<Lease>,
    /// The moment that this view is of. For an answer it is the raft leader's reading, which is never behind
    /// any stamp, so that a holder's remaining time can be computed from it.
    pub log_time: LogTime,
    /// What ties log time to the calendar.
    pub wall_anchor: Option<WallAnchor>,
}

impl RoomView {
    /// When the lease's promise ends, by the calendar. Display only.
    pub fn expires_at(&self) -> Option<WallTime> {
        let (lease, anchor) = (self.lease.as_ref()?, self.wall_anchor?);
        Some(anchor.wall_time_of(lease.promised_until))
    }
}

/// Something that happened to a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomEvent {
    /// The room.
    pub room: RoomId,
    /// What happened.
    pub kind: RoomEventKind,
}

/// What can happen to a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomEventKind {
    /// A contender got it.
    Granted,
    /// Its lease was extended.
    Renewed,
    /// Its holder gave it up.
    Resigned,
    /// Its lease ended.
    Expired,
}
