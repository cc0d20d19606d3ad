//! The state to start from: the database's, or the newest snapshot's, whichever is further along and can be
//! believed.

use tracing::warn;

use super::error::StorageError;
use super::log::LogStore;
use super::snapshots::SnapshotStore;
use super::state_store::{StateMeta, StateStore};
use crate::domain::Rooms;
use crate::raft_types::{LogId, StoredMembership};

/// The state to start from. The log has every entry after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The leases and counters.
    pub rooms: Rooms,
    /// The last entry that is in them.
    pub applied: Option<LogId>,
    /// The membership at that entry.
    pub membership: StoredMembership,
}

/// Picks the state to start from, and makes the database hold it.
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
            let why = "the log no longer has the entries after it, and there is no other state";
            return Err(StorageError::damaged("snapshot", &snapshot.path, why));
        }
        let (meta, rooms) = snapshots.load(&snapshot)?;
        return replace(state, Recovered { rooms, applied: meta.last_log_id, membership: meta.last_membership });
    }
    if let Some((rooms, meta)) = stored {
        return Ok(Recovered { rooms, applied: meta.applied, membership: meta.membership });
    }
    if let Some(purged) = log.purged_log_id() {
        let why = format!("the log was purged up to {purged}, and there is neither a database nor a snapshot of that");
        return Err(StorageError::damaged("state", log.path(), why));
    }
    if was_stored { replace(state, Recovered::default()) } else { Ok(Recovered::default()) }
}

/// Whether the log continues a state.
///
/// The database can be ahead of the log: openraft applies what a majority has flushed, which can be before this
/// node has. After a power cut that is no sign of loss (the watermark tells that), but the log can't continue it.
fn fits(log: &LogStore, applied: Option<LogId>) -> bool {
    let fits = match applied {
        Some(applied) => log.has(&applied),
        None => log.purged_log_id().is_none(),
    };
    if !fits {
        warn!(
            ?applied, purged = ?log.purged_log_id(), last = ?log.last_log_id(),
            "the log does not continue a stored state; it is not used"
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
