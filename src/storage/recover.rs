//! Chooses the state to start from: the lease database or the newest snapshot. A database that the log doesn't continue
//! is not used. Otherwise the later of the two states is chosen.

use tracing::warn;

use super::error::StorageError;
use super::log::LogStore;
use super::snapshots::SnapshotStore;
use super::state_store::{StateMeta, StateStore};
use crate::domain::Rooms;
use crate::raft_types::{LogId, StoredMembership};

/// The state to start from. The log has all entries after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The leases and counters.
    pub rooms: Rooms,
    /// The last entry that the state contains.
    pub applied: Option<LogId>,
    /// The membership at that entry.
    pub membership: StoredMembership,
}

/// Chooses the state to start from, and writes it to the database unless it is there already.
pub(super) fn recover(
    log: &LogStore,
    state: &StateStore,
    snapshots: &SnapshotStore,
    stored: Option<(Rooms, StateMeta)>,
) -> Result<Recovered, StorageError> {
    let was_stored = stored.is_some();
    let stored = stored.filter(|(_, meta)| fits(log, meta.applied));
    let snapshot = snapshots.current();
    let stored_applied = stored.as_ref().and_then(|(_, meta)| meta.applied);

    if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.meta.last_log_id > stored_applied) {
        if !fits(log, snapshot.meta.last_log_id) {
            let why = "the log doesn't have the entries after it, and there is no other state";
            return Err(StorageError::damaged("snapshot", &snapshot.path, why));
        }
        let (meta, rooms) = snapshots.load(&snapshot)?;
        return replace(state, Recovered { rooms, applied: meta.last_log_id, membership: meta.last_membership });
    }
    if let Some((rooms, meta)) = stored {
        return Ok(Recovered { rooms, applied: meta.applied, membership: meta.membership });
    }
    if let Some(purged) = log.purged_log_id() {
        let why = format!("the log was purged up to {purged}, but no database or snapshot has the state up to there");
        return Err(StorageError::damaged("state", log.data_dir(), why));
    }
    if was_stored { replace(state, Recovered::default()) } else { Ok(Recovered::default()) }
}

/// Whether the log has all entries after a state.
///
/// The database can be ahead of the log. openraft applies an entry when a majority has flushed it, and this node may
/// flush it later. If the power is cut in between, nothing acknowledged is lost (the watermark shows a loss), but the
/// log can't continue the state.
fn fits(log: &LogStore, applied: Option<LogId>) -> bool {
    let fits = match applied {
        Some(applied) => log.has(&applied),
        None => log.purged_log_id().is_none(),
    };
    if !fits {
        warn!(
            ?applied, purged = ?log.purged_log_id(), last = ?log.last_log_id(),
            "a stored state is not used, because the log does not have the entries after it"
        );
    }
    fits
}

fn replace(state: &StateStore, recovered: Recovered) -> Result<Recovered, StorageError> {
    let meta = StateMeta {
        counters: recovered.rooms.counters(),
        applied: recovered.applied,
        membership: recovered.membership.clone(),
        digest: recovered.rooms.digest(),
    };
    state.replace_all(&recovered.rooms, &meta)?;
    Ok(recovered)
}
