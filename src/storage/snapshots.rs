//! Snapshots. Each is one file, which is also sent to peers and can be kept as a backup.
//!
//! ```text
//! <index>-<raft term>.snapshot = header frame | one frame per lease, in room order | SHA-256 of all before
//! ```
//!
//! A file with such a name is complete. It is written or received under a temporary name, flushed, and renamed. Only
//! then may openraft learn of it, because openraft then purges the entries that the snapshot covers.
//!
//! A snapshot from a peer is first an [`IncomingSnapshot`]. If its content is right, it becomes a [`ReceivedSnapshot`].
//! If openraft wants it, it becomes a [`SnapshotFile`].
//!
//! A function here that is not `async` can block for as long as it takes to read or write the whole state.

mod file;
mod incoming;
mod store;
mod temporary;

pub use file::SnapshotFile;
pub use incoming::{IncomingSnapshot, ReceivedSnapshot};
pub use store::SnapshotStore;
