//! A holder's right to a room.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::change::{Campaign, Renew};
use super::ids::{ContenderId, FencingToken, Metadata, Nonce, SecretHash};
use super::log_time::{LeaseDuration, LogTime};

/// A holder's right to a room. A vacant room has none, and is stored nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The contender that holds the room.
    pub holder: ContenderId,
    /// A note that everybody sees beside the holder's name.
    pub metadata: Option<Metadata>,
    /// Higher than the token of every earlier grant.
    pub fencing_token: FencingToken,
    /// How long the lease lasts after a renewal that names no duration.
    pub lease_duration: LeaseDuration,
    /// No answer has allowed the holder to act beyond this moment.
    pub promised_until: LogTime,
    /// The lease is due from this moment on: the promise and its guard. See [`LeaseDuration::guard`].
    pub deadline: LogTime,
    /// A caller with a secret of this hash is the holder.
    pub secret_hash: SecretHash,
    /// The holder's key and this nonce give the secret.
    pub nonce: Nonce,
}

impl Lease {
    /// A new lease that begins at `log_time`.
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

    /// Whether the lease may end at `log_time`.
    pub fn is_due(&self, log_time: LogTime) -> bool {
        self.deadline <= log_time
    }

    /// Extends the lease. Promise and deadline never move to an earlier time, because a renewal that was delayed
    /// on its way must not shorten the promise of a later one.
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

    /// How long the holder may still act, if it started to count at `log_time` or before.
    pub fn valid_for(&self, log_time: LogTime) -> Duration {
        self.promised_until.since(log_time)
    }

    /// How long other contenders should wait before they campaign again.
    pub fn retry_after(&self, log_time: LogTime) -> Duration {
        self.deadline.since(log_time)
    }
}
