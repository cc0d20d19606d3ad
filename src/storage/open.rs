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
pub fn open(config: StorageConfig, random: &dyn Random) -> Result<Storage, StorageError> {
    let dir = Arc::new(DataDir::open(&config)?);
    let identity = Identity::load_or_create(dir.clone(), &config.name, random)?;
    dir.release_reserve()?;
    let snapshots = SnapshotStore::open(dir.clone())?;
    let snapshot = snapshots.current();
    let log = LogStore::open(dir.clone(), config.log_chunk_bytes, snapshot.and_then(|found| found.meta.last_log_id))?;
    let (state, stored) = StateStore::open(dir.clone())?;
    let recovered = recover::recover(&log, &state, &snapshots, stored)?;
    dir.take_reserve();
    Ok(Storage { identity, log, state, snapshots, recovered, lock: dir })
}
