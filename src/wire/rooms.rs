//! The answers to a caller about a room.

use std::time::Duration;

use serde::{Deserialize, Serialize};
#[cfg(feature = "server")]
use utoipa::ToSchema;

use super::calendar::rfc_3339;
use super::leader_token::LeaderToken;
use crate::domain::{ContenderId, FencingToken, Metadata, RoomId, RoomView, millis};

/// The version of [`WatchEvent`]'s shape.
pub const WATCH_SCHEMA_VERSION: u8 = 1;

/// A new room: its id and its paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct RoomCreated {
    /// The room's id: 32 characters that nobody can guess.
    pub election_id: RoomId,
    /// The path to campaign at.
    pub campaign_path: String,
    /// The path to read the room's status at.
    pub status_path: String,
    /// The path to watch the room at.
    pub watch_path: String,
}

impl RoomCreated {
    /// The paths of a room.
    pub fn new(room: RoomId) -> Self {
        Self {
            campaign_path: format!("/elections/{room}/campaign"),
            status_path: format!("/elections/{room}"),
            watch_path: format!("/elections/{room}/watch"),
            election_id: room,
        }
    }
}

/// The candidate that leads. Every node shows the same for one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Leader {
    /// The name under which it campaigned.
    pub candidate_id: ContenderId,
    /// The note that it gave when it campaigned or renewed. Left out if it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false))]
    pub metadata: Option<Metadata>,
    /// The fencing token. Send it with each write to the systems that the leader works on.
    pub term: FencingToken,
    /// When the lease ends, for people to read. Programs use `valid_for_ms` or `retry_after_ms`.
    #[cfg_attr(feature = "server", schema(format = DateTime))]
    pub expires_at: String,
}

impl Leader {
    fn of(view: &RoomView) -> Option<Self> {
        let lease = view.lease.as_ref()?;
        Some(Self {
            candidate_id: lease.holder.clone(),
            metadata: lease.metadata.clone(),
            term: lease.fencing_token,
            // A cluster without a wall clock anchor shows 1970. A reader then believes that the lease has ended, which
            // is the safe mistake.
            expires_at: rfc_3339(view.expires_at().unwrap_or_default()),
        })
    }
}

/// How a campaign ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(untagged)]
pub enum CampaignResponse {
    /// The caller leads.
    Won(Won),
    /// Another candidate leads. It may have the caller's name, if an earlier campaign without the same key won.
    Follower(Follower),
}

/// The `status` of `Won`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WonStatus {
    /// The caller leads.
    Leader,
}

/// The caller leads.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Won {
    /// Always `leader`.
    pub status: WonStatus,
    /// The room.
    pub election_id: RoomId,
    /// The caller, as everybody sees it.
    pub leader: Leader,
    /// The proof for renewing and resigning. Keep it secret.
    pub leader_token: LeaderToken,
    /// Renew after this many milliseconds: half the TTL.
    pub renew_after_ms: u64,
    /// The lease is the caller's for at least this many milliseconds, counted from the moment before it sent the
    /// request.
    pub valid_for_ms: u64,
}

impl Won {
    /// What the holder gets back. `None` if the room is vacant in `view`.
    pub fn new(room: RoomId, view: &RoomView, leader_token: LeaderToken, valid_for: Duration) -> Option<Self> {
        let lease_duration = view.lease.as_ref()?.lease_duration.as_duration();
        Some(Self {
            status: WonStatus::Leader,
            election_id: room,
            leader: Leader::of(view)?,
            leader_token,
            renew_after_ms: millis(lease_duration / 2),
            valid_for_ms: millis(valid_for),
        })
    }
}

/// The `status` of `Follower`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FollowerStatus {
    /// The caller does not lead.
    Follower,
}

/// The caller does not lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Follower {
    /// Always `follower`.
    pub status: FollowerStatus,
    /// The room.
    pub election_id: RoomId,
    /// The candidate that leads. Left out if its lease has ended meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false))]
    pub leader: Option<Leader>,
    /// Campaign again after this many milliseconds.
    pub retry_after_ms: u64,
}

impl Follower {
    /// The answer to a caller that does not hold the room.
    pub fn new(room: RoomId, view: &RoomView) -> Self {
        Self {
            status: FollowerStatus::Follower,
            election_id: room,
            leader: Leader::of(view),
            retry_after_ms: retry_after_ms(view),
        }
    }
}

/// The `status` of `Resigned`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResignedStatus {
    /// Nobody leads.
    Vacant,
}

/// The caller has resigned, and the room is vacant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Resigned {
    /// The room.
    pub election_id: RoomId,
    /// Always `vacant`.
    pub status: ResignedStatus,
    /// The term that has ended.
    pub previous_term: FencingToken,
}

/// Whether somebody leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RoomState {
    /// Somebody leads.
    Leader,
    /// Nobody leads.
    Vacant,
}

impl RoomState {
    fn of(view: &RoomView) -> Self {
        if view.lease.is_some() { Self::Leader } else { Self::Vacant }
    }
}

/// The state of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct RoomStatus {
    /// The room.
    pub election_id: RoomId,
    /// Whether somebody leads.
    pub status: RoomState,
    /// The candidate that leads. Left out if nobody leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false))]
    pub leader: Option<Leader>,
    /// The room can become vacant after this many milliseconds. 0 if it is vacant now.
    pub retry_after_ms: u64,
}

impl RoomStatus {
    /// A room as everybody sees it.
    pub fn new(room: RoomId, view: &RoomView) -> Self {
        Self {
            election_id: room,
            status: RoomState::of(view),
            leader: Leader::of(view),
            retry_after_ms: retry_after_ms(view),
        }
    }
}

/// One event of a watch stream: the state of the room when the event was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct WatchEvent {
    /// Always 1.
    #[cfg_attr(feature = "server", schema(minimum = 1, maximum = 1))]
    pub schema_version: u8,
    /// The room.
    pub election_id: RoomId,
    /// Whether somebody leads.
    pub status: RoomState,
    /// The candidate that leads, or null.
    #[cfg_attr(feature = "server", schema(required = true))]
    pub leader: Option<Leader>,
    /// The room can become vacant after this many milliseconds. 0 if it is vacant now.
    pub retry_after_ms: u64,
    /// The moment of this state, for people to read.
    #[cfg_attr(feature = "server", schema(format = DateTime))]
    pub observed_at: String,
}

impl WatchEvent {
    /// A room as everybody sees it.
    pub fn new(room: RoomId, view: &RoomView) -> Self {
        let observed_at = view.wall_anchor.map(|anchor| anchor.wall_time_of(view.log_time));
        Self {
            schema_version: WATCH_SCHEMA_VERSION,
            election_id: room,
            status: RoomState::of(view),
            leader: Leader::of(view),
            retry_after_ms: retry_after_ms(view),
            observed_at: rfc_3339(observed_at.unwrap_or_default()),
        }
    }
}

fn retry_after_ms(view: &RoomView) -> u64 {
    view.lease.as_ref().map_or(0, |lease| millis(lease.retry_after(view.log_time)))
}

#[cfg(test)]
mod tests;
