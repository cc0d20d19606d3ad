//! Translates between openraft and the rooms; decides nothing.
//!
//! Entries come in runs. A run is applied in memory, written to the state store as one batch, and only then
//! answered: one batch for each entry would cost five times as much under load.

use std::io;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use openraft::storage::EntryResponder;
use openraft::type_config::alias::SnapshotOf;
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder, storage::RaftStateMachine};

use super::LocalNode;
use super::applied::{Applied, EntryKind, Position};
use crate::domain::{Lease, LogTime, RoomId};
use crate::planted::{Bug, is_planted};
use crate::raft_types::{LogId, Reply, SnapshotMeta, StoredMembership, TypeConfig};
use crate::storage::{SnapshotFile, SnapshotStore, StateMeta, StateStore};

/// How many entries are applied under one lock and in one batch. Bounds memory when a long log is replayed.
const RUN_MAX: usize = 1_024;

/// The state machine that openraft drives.
pub struct StateMachine {
    local: Arc<LocalNode>,
    applied: Applied,
    state_store: StateStore,
    snapshots: SnapshotStore,
}

impl StateMachine {
    /// A state machine over recovered state.
    pub fn new(local: Arc<LocalNode>, applied: Applied, state_store: StateStore, snapshots: SnapshotStore) -> Self {
        Self { local, applied, state_store, snapshots }
    }

    fn apply_run(&self, run: Vec<EntryResponder<TypeConfig>>) -> io::Result<()> {
        let mut touched = Vec::new();
        let kinds = run.iter().map(|(entry, _)| (entry.log_id, kind_of(entry)));
        let outcomes = self.applied.apply(kinds, &mut touched);
        touched.sort_unstable();
        touched.dedup();
        let (position, leases) = self.applied.leases_of(touched);
        self.state_store.apply(&leases, &meta_of(position))?;
        for ((_, responder), outcome) in run.into_iter().zip(outcomes) {
            if let Some(responder) = responder {
                responder.send(Reply(outcome));
            }
        }
        Ok(())
    }
}

fn kind_of(entry: &crate::raft_types::Entry) -> EntryKind<'_> {
    match &entry.payload {
        EntryPayload::Blank => EntryKind::Blank,
        EntryPayload::Normal(command) => EntryKind::Command(command),
        EntryPayload::Membership(membership) => {
            EntryKind::Membership(StoredMembership::new(Some(entry.log_id), membership.clone()))
        }
    }
}

fn meta_of(position: Position) -> StateMeta {
    StateMeta {
        counters: position.counters,
        applied: position.applied,
        membership: position.membership,
        digest: position.digest,
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let position = self.applied.position();
        Ok((position.applied, position.membership))
    }

    async fn apply<Strm>(&mut self, entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let mut runs = entries.ready_chunks(RUN_MAX);
        while let Some(run) = runs.next().await {
            self.apply_run(run.into_iter().collect::<Result<_, _>>()?)?;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        let (position, leases) = self.applied.freeze();
        SnapshotBuilder {
            local: self.local.clone(),
            position,
            leases,
            snapshots: self.snapshots.clone(),
            state_store: self.state_store.clone(),
        }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotFile) -> Result<(), io::Error> {
        let (snapshots, state_store, applied) =
            (self.snapshots.clone(), self.state_store.clone(), self.applied.clone());
        let (meta, own_cluster) = (meta.clone(), self.local.cluster_id());
        self.snapshots
            .blocking()
            .run(move || {
                // The file first: it is what the state can be rebuilt from if anything after it is cut short.
                let snapshot = snapshots.adopt(&snapshot.path)?;
                if snapshot.cluster_id != own_cluster {
                    return Err(io::Error::other("a snapshot of another cluster was sent"));
                }
                let (_, rooms) = snapshots.load(&snapshot)?;
                applied.replace(rooms.clone(), meta.last_log_id, meta.last_membership);
                state_store.replace_all(&rooms, &meta_of(applied.position()))?;
                Ok(())
            })
            .await
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<SnapshotOf<TypeConfig, SnapshotFile>>, io::Error> {
        let snapshots = self.snapshots.clone();
        let current = self.snapshots.blocking().run(move || Ok(snapshots.current())).await?;
        Ok(current.map(|file| SnapshotOf::<TypeConfig, _> { meta: file.meta.clone(), snapshot: file }))
    }
}

/// Writes a frozen state to a snapshot file, while applies go on.
pub struct SnapshotBuilder {
    local: Arc<LocalNode>,
    position: Position,
    leases: Vec<(RoomId, Lease)>,
    snapshots: SnapshotStore,
    state_store: StateStore,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<SnapshotOf<TypeConfig, SnapshotFile>, io::Error> {
        let meta =
            SnapshotMeta { last_log_id: self.position.applied, last_membership: self.position.membership.clone() };
        let cluster_id = self.local.cluster_id();
        let (leases, mut counters) = (std::mem::take(&mut self.leases), self.position.counters);
        if is_planted(Bug::SnapshotWithoutLogTime) {
            counters.log_time = LogTime::default();
        }
        if is_planted(Bug::TokenForgotten) {
            counters.last_fencing_token = leases.iter().map(|(_, lease)| lease.fencing_token.0).max().unwrap_or(1);
        }
        let (snapshots, state_store) = (self.snapshots.clone(), self.state_store.clone());
        let file = self
            .snapshots
            .blocking()
            .run(move || {
                // The raft log behind a snapshot is purged, so both copies of what it held are on the disk by then.
                state_store.durable_flush()?;
                Ok(snapshots.write(cluster_id, &meta, counters, leases.into_iter())?)
            })
            .await?;
        Ok(SnapshotOf::<TypeConfig, _> { meta: file.meta.clone(), snapshot: file })
    }
}
