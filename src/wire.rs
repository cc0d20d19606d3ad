//! Public JSON shapes: the only file where the words of the contract (leader, candidate, term) meet ours
//! (holder, contender, fencing token).
//!
//! The server, its OpenAPI document and the client library all use these types. What has a rule is a domain
//! type, so that no shape can hold a value that the contract forbids.

mod reports;
mod requests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
#[cfg(feature = "server")]
use utoipa::ToSchema;
use zeroize::Zeroizing;

pub use reports::{ErrorBody, ErrorCode, Health, HealthStatus, Member, NodeReport, RaftRole};
pub use requests::{CampaignRequest, InvalidRequest, RenewRequest, ResignRequest, WAIT_SECONDS_MAX};

use crate::domain::{ContenderId, FencingToken, Metadata, RoomId, RoomView, WallTime, millis};

/// The version of [`WatchEvent`]'s shape.
pub const WATCH_SCHEMA_VERSION: u8 = 1;

/// The proof of being the holder, as the wire carries it. It shows in no debug output and is wiped when dropped.
// 32 bytes leave two bits of the last character unused; base64url wants them to be zero.
#[derive(Clone)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[cfg_attr(feature = "server", schema(value_type = String, min_length = 43, max_length = 43,
    pattern = "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$", example = "mJ9r1cQ5bYb6m3lVgq0w3l2f9Jc0a1s5d8h7k4n2x6E"))]
pub struct LeaderToken(Zeroizing<String>);

impl LeaderToken {
    /// Takes the text over.
    pub fn new(text: Zeroizing<String>) -> Self {
        Self(text)
    }

    /// The text. It goes into a request or response body, and nowhere else.
    pub fn expose_text(&self) -> &str {
        &self.0
    }
}

impl Serialize for LeaderToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for LeaderToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Zeroizing::new(text)))
    }
}

impl fmt::Debug for LeaderToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaderToken(…)")
    }
}

/// Where to find a room that was made just now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct RoomCreated {
    /// 32 characters that nobody can guess.
    #[cfg_attr(feature = "server", schema(value_type = String, example = "k3v9Qe0Jx8mB2nC7pL5rT1wYzA4sD6fG"))]
    pub election_id: RoomId,
    /// Where to campaign.
    #[cfg_attr(feature = "server", schema(example = "/elections/k3v9Qe0Jx8mB2nC7pL5rT1wYzA4sD6fG/campaign"))]
    pub campaign_path: String,
    /// Where to look.
    #[cfg_attr(feature = "server", schema(example = "/elections/k3v9Qe0Jx8mB2nC7pL5rT1wYzA4sD6fG"))]
    pub status_path: String,
    /// Where to watch.
    #[cfg_attr(feature = "server", schema(example = "/elections/k3v9Qe0Jx8mB2nC7pL5rT1wYzA4sD6fG/watch"))]
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

/// Who leads. Everybody, on every node, sees the same for one lease as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Leader {
    /// The name that it campaigned under.
    #[cfg_attr(feature = "server", schema(value_type = String, example = "worker-a"))]
    pub candidate_id: ContenderId,
    /// What it shows to everybody; left out where none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(value_type = Option<String>, nullable = false,
        example = "https://worker-a.internal:8443"))]
    pub metadata: Option<Metadata>,
    /// A number that never repeats and never goes down, in one room and across all of them: the fencing token
    /// to send along with each write.
    #[cfg_attr(feature = "server", schema(value_type = u64, minimum = 1, maximum = 9007199254740991u64,
        example = 1842))]
    pub term: FencingToken,
    /// When the lease ends, for people. To decide anything, use `valid_for_ms` or `retry_after_ms`.
    #[cfg_attr(feature = "server", schema(format = DateTime, example = "2026-11-29T12:00:30.123Z"))]
    pub expires_at: String,
}

impl Leader {
    fn of(view: &RoomView) -> Option<Self> {
        let lease = view.lease.as_ref()?;
        Some(Self {
            candidate_id: lease.holder.clone(),
            metadata: lease.metadata.clone(),
            term: lease.fencing_token,
            // A cluster that has no calendar yet shows 1970: whoever goes by this field then takes the lease
            // to be over, which is the safe mistake.
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
    /// Somebody else does, or this candidate by an earlier campaign without the key.
    Follower(Follower),
}

/// The `status` of [`Won`].
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
    #[cfg_attr(feature = "server", schema(value_type = String, example = "nightly-report"))]
    pub election_id: RoomId,
    /// The caller, as everybody sees it.
    pub leader: Leader,
    /// The proof for renewing and resigning. Keep it secret.
    pub leader_token: LeaderToken,
    /// When to renew: half the TTL.
    #[cfg_attr(feature = "server", schema(example = 15000))]
    pub renew_after_ms: u64,
    /// For how long the lease is certainly the caller's, counted from the moment before it sent the request.
    #[cfg_attr(feature = "server", schema(example = 30000))]
    pub valid_for_ms: u64,
}

impl Won {
    /// What a holder is told. `None` if nobody holds the room in `view`.
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

/// The `status` of [`Follower`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LostStatus {
    /// The caller doesn't lead.
    Follower,
}

/// The caller doesn't lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Follower {
    /// Always `follower`.
    pub status: LostStatus,
    /// The room.
    #[cfg_attr(feature = "server", schema(value_type = String, example = "nightly-report"))]
    pub election_id: RoomId,
    /// Who leads; left out if nobody does any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false))]
    pub leader: Option<Leader>,
    /// When to ask again.
    #[cfg_attr(feature = "server", schema(example = 29876))]
    pub retry_after_ms: u64,
}

impl Follower {
    /// What everybody but the holder is told.
    pub fn new(room: RoomId, view: &RoomView) -> Self {
        Self {
            status: LostStatus::Follower,
            election_id: room,
            leader: Leader::of(view),
            retry_after_ms: retry_after_ms(view),
        }
    }
}

/// The `status` of [`Resigned`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResignedStatus {
    /// Nobody leads.
    Vacant,
}

/// The room is vacant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Resigned {
    /// The room.
    #[cfg_attr(feature = "server", schema(value_type = String, example = "nightly-report"))]
    pub election_id: RoomId,
    /// Always `vacant`.
    pub status: ResignedStatus,
    /// The term that is over.
    #[cfg_attr(feature = "server", schema(value_type = u64, minimum = 1, maximum = 9007199254740991u64,
        example = 1842))]
    pub previous_term: FencingToken,
}

/// Whether somebody leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RoomState {
    /// Somebody leads.
    Leader,
    /// Nobody does.
    Vacant,
}

impl RoomState {
    fn of(view: &RoomView) -> Self {
        if view.lease.is_some() { Self::Leader } else { Self::Vacant }
    }
}

/// How a room stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct RoomStatus {
    /// The room.
    #[cfg_attr(feature = "server", schema(value_type = String, example = "nightly-report"))]
    pub election_id: RoomId,
    /// Whether somebody leads.
    pub status: RoomState,
    /// Who leads; left out if nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false))]
    pub leader: Option<Leader>,
    /// When the room could be vacant; 0 if it is.
    #[cfg_attr(feature = "server", schema(example = 29876))]
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

/// One event of a watch stream: how the room stood when it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct WatchEvent {
    /// Always 1.
    #[cfg_attr(feature = "server", schema(minimum = 1, maximum = 1, example = 1))]
    pub schema_version: u8,
    /// The room.
    #[cfg_attr(feature = "server", schema(value_type = String, example = "nightly-report"))]
    pub election_id: RoomId,
    /// Whether somebody leads.
    pub status: RoomState,
    /// Who leads, or null.
    #[cfg_attr(feature = "server", schema(required = true))]
    pub leader: Option<Leader>,
    /// When the room could be vacant; 0 if it is.
    #[cfg_attr(feature = "server", schema(example = 14000))]
    pub retry_after_ms: u64,
    /// The moment that this is of, for people.
    #[cfg_attr(feature = "server", schema(format = DateTime, example = "2026-11-29T12:00:16.123Z"))]
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

/// RFC 3339 with milliseconds. A time beyond the calendar becomes its last moment.
pub fn rfc_3339(time: WallTime) -> String {
    let millis = i64::try_from(time.0).unwrap_or(i64::MAX);
    let timestamp = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{timestamp:.3}")
}

#[cfg(test)]
mod fuzz_tests;

#[cfg(test)]
mod tests;
