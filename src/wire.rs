//! The public JSON shapes. Their field names are the words of the public interface (leader, candidate, term). The types
//! of their fields are the domain's (holder, contender, fencing token).
//!
//! The server, its OpenAPI document and the client library all use these types. Names, metadata and TTLs are domain
//! types, which cannot hold a forbidden value.

mod calendar;
mod leader_token;
mod reports;
mod requests;
mod rooms;

pub use calendar::rfc_3339;
pub use leader_token::LeaderToken;
pub use reports::{ErrorBody, ErrorCode, Health, HealthStatus, Member, NodeReport, RaftRole};
pub use requests::{CampaignRequest, InvalidRequest, RenewRequest, ResignRequest, WAIT_SECONDS_MAX};
pub use rooms::{
    CampaignResponse, Follower, FollowerStatus, Leader, Resigned, ResignedStatus, RoomCreated, RoomState, RoomStatus,
    WATCH_SCHEMA_VERSION, WatchEvent, Won, WonStatus,
};

#[cfg(test)]
mod fuzz_tests;
