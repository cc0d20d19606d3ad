//! Raft messages from peers, on their way to openraft.

use std::fmt;
use std::io;
use std::sync::Arc;

use openraft::async_runtime::WatchReceiver;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;

use super::error::ConsensusError;
use super::last_heard::LastHeard;
use super::local::LocalNode;
use super::plausible::{self, RaftMessage, Untrue};
use super::state_machine::{RaftSnapshot, StateMachine};
use crate::listen::OncePerMinute;
use crate::peer::SnapshotHead;
use crate::raft_types::TypeConfig;
use crate::storage::{IncomingSnapshot, SnapshotStore, StorageError};

/// The answer to a raft message, or the reason why this node gives none.
pub type RaftAnswer<T> = Result<T, Unanswered>;

/// Why this node gives no answer to a raft message.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The node takes no part in the cluster any more.
    #[error(transparent)]
    Stopped(#[from] ConsensusError),
    /// The message cannot be true. Openraft must not get it.
    #[error("rejected: {0}")]
    Untrue(#[from] Untrue),
    /// The snapshot from the peer is damaged or is the wrong one. That is no fault of this node, so the node goes on.
    /// Openraft must not get such a snapshot: openraft would stop, this node would end, and that would repeat after
    /// each start.
    #[error("snapshot: {0}")]
    SnapshotRejected(String),
}

/// Receives raft messages from peers. Cheap to clone.
#[derive(Clone)]
pub struct Inbox {
    raft: openraft::Raft<TypeConfig, StateMachine>,
    local: Arc<LocalNode>,
    raft_leader_heard: Arc<LastHeard>,
    snapshots: SnapshotStore,
    /// Limits what a peer can write into this node's log.
    rejection_logged: Arc<OncePerMinute>,
}

impl Inbox {
    pub(super) fn new(
        raft: openraft::Raft<TypeConfig, StateMachine>,
        local: Arc<LocalNode>,
        raft_leader_heard: Arc<LastHeard>,
        snapshots: SnapshotStore,
    ) -> Self {
        Self { raft, local, raft_leader_heard, snapshots, rejection_logged: Arc::default() }
    }

    fn check(&self, message: &impl RaftMessage) -> Result<(), Untrue> {
        let own_raft_term = self.raft.metrics().borrow_watched().current_term;
        plausible::check(message, own_raft_term).inspect_err(|error| self.log_rejection(error))
    }

    fn log_rejection(&self, error: &Untrue) {
        if self.rejection_logged.is_due() {
            tracing::warn!(%error, "a raft message of a peer was rejected; further ones are logged once a minute");
        }
    }

    /// Raft's AppendEntries.
    pub async fn append(
        &self,
        request: AppendEntriesRequest<TypeConfig>,
    ) -> RaftAnswer<AppendEntriesResponse<TypeConfig>> {
        self.check(&request)?;
        plausible::check_order(&request).inspect_err(|error| self.log_rejection(error))?;
        let answer = self.raft.append_entries(request).await.map_err(ConsensusError::stopped)?;
        if !matches!(answer, AppendEntriesResponse::HigherVote(_)) {
            self.raft_leader_heard.note();
        }
        Ok(answer)
    }

    /// Raft's RequestVote.
    pub async fn vote(&self, request: VoteRequest<TypeConfig>) -> RaftAnswer<VoteResponse<TypeConfig>> {
        self.check(&request)?;
        Ok(self.raft.vote(request).await.map_err(ConsensusError::stopped)?)
    }

    /// Raft's PreVote: would this node vote for the peer?
    pub async fn pre_vote(&self, request: VoteRequest<TypeConfig>) -> RaftAnswer<VoteResponse<TypeConfig>> {
        self.check(&request)?;
        Ok(self.raft.pre_vote(request).await.map_err(ConsensusError::stopped)?)
    }

    /// The request of a raft leader to take over as raft leader.
    pub async fn transfer(
        &self,
        request: TransferLeaderRequest<TypeConfig>,
    ) -> RaftAnswer<TransferLeaderResponse<TypeConfig>> {
        self.check(&request)?;
        Ok(self.raft.handle_transfer_leader(request).await.map_err(ConsensusError::stopped)?)
    }

    /// An empty file for the bytes of a peer's snapshot.
    pub async fn begin_snapshot(&self) -> io::Result<IncomingSnapshot> {
        self.snapshots.begin_incoming().await
    }

    /// Installs a peer's snapshot once all of its bytes are there.
    pub async fn install_snapshot(
        &self,
        head: SnapshotHead,
        incoming: IncomingSnapshot,
    ) -> RaftAnswer<SnapshotResponse<TypeConfig>> {
        self.check(&head)?;
        let received = Arc::new(incoming.verify().await.map_err(|error| match error {
            // Not the error's own text, which is advice for the operator of the sender.
            StorageError::Damaged { why, .. } | StorageError::Newer { why, .. } => rejected(&why),
            error => rejected(&error),
        })?);
        let found = received.description();
        if found.cluster_id != self.local.cluster_id() {
            return Err(rejected(&"it belongs to another cluster"));
        }
        if found.meta != head.meta {
            return Err(rejected(&"it is not the snapshot that its head announces"));
        }
        self.raft_leader_heard.note();
        let snapshot = RaftSnapshot::Received(received.clone());
        let snapshot = SnapshotOf::<TypeConfig, RaftSnapshot> { meta: head.meta, snapshot };
        let answer = self.raft.install_full_snapshot(head.vote, snapshot).await.map_err(ConsensusError::stopped);
        let clean_up = move || {
            drop(received);
            Ok(())
        };
        if let Err(error) = self.snapshots.blocking().run(clean_up).await {
            tracing::warn!(%error, "the temporary file of a received snapshot was not removed");
        }
        Ok(answer?)
    }
}

fn rejected(reason: &dyn fmt::Display) -> Unanswered {
    tracing::warn!(%reason, "a snapshot from a peer was rejected");
    Unanswered::SnapshotRejected(reason.to_string())
}
