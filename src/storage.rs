//! What is on disk, and what must be flushed before we answer.
//!
//! ```text
//! <dir>/lock                one process at a time
//!       identity            node id, cluster id               flushed when written
//!       watermark           what the log has at least         flushed before a vote is answered, else each second
//!       log/                raft log and vote (raft-log)      flushed before an append or a vote is answered
//!       leases/             the state (sled)                  flushed only on demand; log and snapshot can remake it
//!       snapshots/          the state at one log position     flushed before raft hears of it, and purges the log
//!       quarantine-<time>/  databases that were damaged
//!       reserve             space for a start on a full disk
//! ```
//!
//! The log, its vote and the newest snapshot are the truth. A node that finds them damaged or shortened must not
//! take part under its old identity; [`StorageError::Damaged`] says so. The database of leases is a cache of
//! them, and is remade when it is damaged, behind the log's purged part, or ahead of the log's end.

mod blocking;
mod config;
mod data_dir;
mod disk;
mod error;
mod files;
mod identity;
mod log;
mod open;
mod recover;
mod snapshots;
mod state_store;

pub use blocking::Blocking;
pub use config::StorageConfig;
pub use data_dir::DataDir;
pub use disk::{Disk, SystemDisk};
pub use error::StorageError;
pub use identity::Identity;
pub use log::{LogStats, LogStore};
pub use open::{Storage, open};
pub use recover::Recovered;
pub use snapshots::{IncomingSnapshot, ReceivedSnapshot, SnapshotFile, SnapshotStore};
pub use state_store::{StateMeta, StateStore};
