//! The files of a node, and the moments at which they are flushed.
//!
//! ```text
//! <dir>/lock                one process at a time
//!       identity            node id, cluster id               flushed when written
//!       watermark           the log's format and least end    flushed before a vote or a new log file is acknowledged,
//!                                                             before a truncation, else within a second
//!       log/                raft log and vote (raft-log)      flushed before an append or a vote is answered
//!       leases/             the state (sled)                  flushed before this node writes a snapshot of its own
//!       snapshots/          the state at one log position     flushed before openraft hears of it and purges the log
//!       quarantine-<time>/  damaged copies of leases/, at most two
//!       reserve             4 MiB, freed to start on a full disk
//! ```
//!
//! The log, its vote and the newest snapshot are the truth. If a node finds them damaged or shortened, it must not
//! take part under its old identity, and [`StorageError::Damaged`] says so. The lease database is a cache of log and
//! snapshot. It is made again if it is damaged, behind the purged part of the log, or ahead of the log's end.
//!
//! If a newer version wrote any of the files, a start changes nothing and fails with [`StorageError::Newer`].

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
