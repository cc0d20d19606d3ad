//! One method for each thing that a user can do with a room.
//!
//! Any node serves any request. The called node makes secrets, waits and watches. The raft leader decides. Two kinds of
//! failure are never mixed: nothing was proposed ([`ServiceError::Unavailable`]), and a proposal without a known
//! outcome ([`ServiceError::OutcomeUnknown`]).

mod campaign;
mod decide;
mod error;
mod forward;
mod holding;
mod queues;
mod request;
mod rooms;
mod secrets;
mod settings;
mod tries;
mod watch;

pub use campaign::CampaignAnswer;
pub use decide::{Decided, Decider};
pub use error::ServiceError;
pub use holding::Holding;
pub use request::CampaignRequest;
pub use rooms::{Consistency, RoomService};
pub use secrets::{IdempotencyKey, LeaseSecret};
pub use settings::ServiceSettings;
pub use watch::RoomWatch;
