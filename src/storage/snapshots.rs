//! Snapshots: one file each, which is also what a peer is sent and what a backup is.
//!
//! ```text
//! <index>-<raft term>.snapshot = header frame | one frame per lease, in room order | SHA-256 of all before
//! ```
//!
//! A file of that name is complete: it is written or received under another one, flushed, and renamed. Only then
//! may openraft hear of it, because it purges the log that the snapshot stands for.
//!
//! All functions here block, for as long as it takes to read or write the whole state.

mod file;
mod incoming;
mod store;
mod temporary;

pub use file::SnapshotFile;
pub use incoming::{IncomingSnapshot, ReceivedSnapshot};
pub use store::SnapshotStore;
