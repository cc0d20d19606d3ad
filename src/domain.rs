//! The rules of a room: who holds it, until when, and what a request may change.
//!
//! Everything here is pure: the same commands in the same order give the same bytes on every node. So there is no
//! clock, no randomness, no IO and no unordered iteration in this folder. Everything uncertain is decided outside
//! and passed in as data. `tests/tidy.rs` reads the source to keep it so.
//!
//! ```text
//! change  ──► Rooms::judge   would it change anything?   (raft leader only, before it proposes)
//! command ──► Rooms::apply   change it                   (every node, in log order)
//! ```

mod change;
mod command;
mod digest;
mod ids;
mod lease;
mod log_time;
mod outcome;
mod rooms;
mod view;

pub use change::{Campaign, Change, Operation, Renew, Resign};
pub use command::Command;
pub use digest::StateDigest;
pub use ids::{ContenderId, FencingToken, InvalidId, Metadata, Nonce, RoomId, SecretHash, fencing_token_max};
pub use lease::Lease;
pub use log_time::{LeaseDuration, LogTime, Stamp, WallAnchor, WallTime, millis};
pub use outcome::{Judgement, Outcome, Refusal};
pub use rooms::{Counters, Effect, Limits, Rooms};
pub use view::{RoomEvent, RoomEventKind, RoomView};
