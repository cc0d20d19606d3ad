//! The rules of a room: who holds it, until when, and what a request may change.
//!
//! Everything here is pure. The same commands in the same order give the same bytes on every node, so
//! there is no clock, no randomness, no IO and no unordered iteration in this folder; whatever is
//! uncertain is decided outside and handed in as data. `tests/tidy.rs` reads the source to keep it so.
//!
//! ```text
//! command ──► Rooms::judge   would it change anything?   (raft leader only, before proposing)
//!         └─► Rooms::apply   change it                   (every node, in log order)
//! ```

mod command;
mod ids;
mod log_time;
mod room;
mod rooms;

pub use command::{Ask, Campaign, Command, Judgement, Outcome, Proposal, Refusal, Renew, Resign};
pub use ids::{ContenderId, FencingToken, InvalidId, Metadata, Nonce, RoomId, SecretHash, fencing_token_max};
pub use log_time::{LeaseDuration, LogTime, Stamp, WallTime, millis};
pub use room::{Lease, RoomEvent, RoomEventKind, RoomView};
pub use rooms::{Counters, Effect, Limits, Rooms, StateDigest, WallAnchor};
