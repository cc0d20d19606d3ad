//! Translates between openraft and the rooms. It decides nothing.
//!
//! Entries come in runs. A run is applied in memory, then written to the state store as one batch, and then answered.
//! A batch for each entry would cost five times as much under load.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use openraft::storage::EntryResponder;
use openraft::type_config::alias::SnapshotOf;
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder, storage::RaftStateMachine};

use super::local::LocalNode;
use super::replica::{EntryKind, Position, Replica};
use crate::domain::{Lease, RoomId};
use crate::raft_types::{Entry, LogId, SnapshotMeta, StoredMembership, TypeConfig};
use crate::storage::{ReceivedSnapshot, SnapshotFile, SnapshotStore, StateMeta, StateStore};

/// At most this many entries are applied under one lock and in one batch, to bound memory when a long log is replayed.
const RUN_MAX: usize = 1_024;

/// A snapshot in openraft's hands.
#[derive(Debug, Clone)]
pub enum RaftSnapshot {
    /// A snapshot file of this node.
    Own(SnapshotFile),
    /// A snapshot from a peer, with its state in memory. If openraft's core does not want it, the core drops it.
    /// Freeing that memory would delay the core, so the receiver keeps a second reference until the core is done.
    Received(Arc<ReceivedSnapshot>),
}

impl RaftSnapshot {
    /// Its file.
    pub fn file(&self) -> &SnapshotFile {
        match self {
            RaftSnapshot::Own(file) => file,
            RaftSnapshot::Received(received) => received.description(),
        }
    }
}

/// The state machine that openraft drives.
pub struct StateMachine {
    local: Arc<LocalNode>,
    replica: Replica,
    state_store: StateStore,
    snapshots: SnapshotStore,
}

impl StateMachine {
    /// A state machine over recovered state.
    pub fn new(local: Arc<LocalNode>, replica: Replica, state_store: StateStore, snapshots: SnapshotStore) -> Self {
        Self { local, replica, state_store, snapshots }
    }

    async fn received(&self, snapshot: RaftSnapshot) -> io::Result<Arc<ReceivedSnapshot>> {
        match snapshot {
            RaftSnapshot::Received(received) => Ok(received),
            // Openraft may pass back a snapshot that it got from here. Its test suite passes one to another node.
            RaftSnapshot::Own(file) => {
                let mut copy = self.snapshots.begin_incoming().await?;
                let mut chunks = pin!(self.snapshots.read_chunks(&file).await?);
                while let Some(chunk) = chunks.next().await {
                    copy.write(chunk?).await?;
                }
                Ok(Arc::new(copy.verify().await?))
            }
        }
    }

    fn apply_run(&self, run: Vec<EntryResponder<TypeConfig>>) -> io::Result<()> {
        let mut touched = Vec::new();
        let kinds = run.iter().map(|(entry, _)| (entry.log_id, kind_of(entry)));
        let outcomes = self.replica.apply(kinds, &mut touched);
        touched.sort_unstable();
        touched.dedup();
        let (position, leases) = self.replica.leases_of(touched);
        self.state_store.apply(&leases, &meta_of(position))?;
        for ((_, responder), outcome) in run.into_iter().zip(outcomes) {
            if let Some(responder) = responder {
                responder.send(outcome);
            }
        }
        Ok(())
    }
}

fn kind_of(entry: &Entry) -> EntryKind<'_> {
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
    type SnapshotData = RaftSnapshot;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let position = self.replica.position();
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
        let (position, leases) = self.replica.freeze();
        SnapshotBuilder {
            local: self.local.clone(),
            position,
            leases,
            snapshots: self.snapshots.clone(),
            state_store: self.state_store.clone(),
        }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: RaftSnapshot) -> Result<(), io::Error> {
        let received = self.received(snapshot).await?;
        let (snapshots, state_store, replica) =
            (self.snapshots.clone(), self.state_store.clone(), self.replica.clone());
        let meta = meta.clone();
        self.snapshots
            .blocking()
            .run(move || {
                // The file first: if a crash interrupts the rest, the state is rebuilt from the file.
                snapshots.adopt(&received)?;
                let rooms = received.rooms();
                replica.replace(rooms.clone(), meta.last_log_id, meta.last_membership);
                state_store.replace_all(rooms, &meta_of(replica.position()))?;
                Ok(())
            })
            .await
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<SnapshotOf<TypeConfig, RaftSnapshot>>, io::Error> {
        let snapshots = self.snapshots.clone();
        let current = self.snapshots.blocking().run(move || Ok(snapshots.current())).await?;
        Ok(current.map(own))
    }
}

fn own(file: SnapshotFile) -> SnapshotOf<TypeConfig, RaftSnapshot> {
    SnapshotOf::<TypeConfig, _> { meta: file.meta.clone(), snapshot: RaftSnapshot::Own(file) }
}

/// Writes a copy of the state to a snapshot file while applies go on.
pub struct SnapshotBuilder {
    local: Arc<LocalNode>,
    position: Position,
    leases: Vec<(RoomId, Lease)>,
    snapshots: SnapshotStore,
    state_store: StateStore,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = RaftSnapshot;

    async fn build_snapshot(&mut self) -> Result<SnapshotOf<TypeConfig, RaftSnapshot>, io::Error> {
        let meta =
            SnapshotMeta { last_log_id: self.position.applied, last_membership: self.position.membership.clone() };
        let cluster_id = self.local.cluster_id();
        let (leases, counters) = (std::mem::take(&mut self.leases), self.position.counters);
        let (snapshots, state_store) = (self.snapshots.clone(), self.state_store.clone());
        let file = self
            .snapshots
            .blocking()
            .run(move || {
                // The raft log behind a snapshot is purged. So state store and snapshot are both on the disk before that.
                state_store.durable_flush()?;
                Ok(snapshots.write(cluster_id, &meta, counters, leases.into_iter())?)
            })
            .await?;
        Ok(own(file))
    }
}
