//! Opens a data directory: identity, log, snapshots and database. Then it chooses the state to start from.

use std::sync::Arc;

use super::config::StorageConfig;
use super::data_dir::DataDir;
use super::error::StorageError;
use super::identity::Identity;
use super::log::LogStore;
use super::recover::{self, Recovered};
use super::snapshots::SnapshotStore;
use super::state_store::StateStore;
use crate::random::Random;

/// Everything that a node has on disk.
pub struct Storage {
    /// The node id, and the cluster that the node belongs to.
    pub identity: Identity,
    /// The raft log and the vote.
    pub log: LogStore,
    /// The database of the replicated state.
    pub state: StateStore,
    /// The snapshots of this node.
    pub snapshots: SnapshotStore,
    /// The state to start from.
    pub recovered: Recovered,
    /// The directory. It stays locked while any store in it is in use.
    pub lock: Arc<DataDir>,
}

/// Opens a data directory, or creates it. A start on a full disk can use the reserve.
///
/// If a newer version wrote any file in it, nothing is changed.
pub fn open(config: StorageConfig, random: &dyn Random) -> Result<Storage, StorageError> {
    let dir = Arc::new(DataDir::open(&config)?);
    let identity = Identity::load_or_create(dir.clone(), &config.name, random)?;
    LogStore::check_format(&dir)?;
    let had_reserve = dir.release_reserve()?;
    let opened = open_stores(&dir, identity, config.log_chunk_bytes);
    if opened.is_ok() || had_reserve {
        dir.take_reserve();
    }
    opened
}

/// Opens everything behind the identity. Snapshots and database are read first, and changed only after the log is open.
/// The log can't be only read, because raft-log removes a record that a crash cut off.
fn open_stores(dir: &Arc<DataDir>, identity: Identity, log_chunk_bytes: usize) -> Result<Storage, StorageError> {
    let snapshots = SnapshotStore::open(dir.clone())?;
    let state = StateStore::open(dir.clone())?;
    let snapshot = snapshots.current().and_then(|found| found.meta.last_log_id);
    let log = LogStore::open(dir.clone(), log_chunk_bytes, snapshot)?;
    snapshots.remove_incomplete()?;
    let (state, stored) = state.or_replaced()?;
    let recovered = recover::recover(&log, &state, &snapshots, stored)?;
    Ok(Storage { identity, log, state, snapshots, recovered, lock: dir.clone() })
}
