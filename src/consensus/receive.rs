//! Raft messages from peers, on their way to openraft.

use std::sync::Arc;

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;

use super::state_machine::RaftSnapshot;
use super::{Consensus, ConsensusError, stopped};
use crate::peer::SnapshotHead;
use crate::raft_types::TypeConfig;
use crate::storage::{IncomingSnapshot, StorageError};

/// A raft message's answer, or why this node gives none.
pub type RaftAnswer<T> = Result<T, Unanswered>;

/// Why this node gives a raft message no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// It takes no part any more.
    #[error(transparent)]
    Stopped(#[from] ConsensusError),
    /// A snapshot is no good, which is no fault of this node, so it goes on. Openraft must not get such a one: it ends
    /// the node over what can't be installed, and each start would be sent the same again.
    #[error("snapshot: {0}")]
    SnapshotRefused(String),
}

impl Consensus {
    /// Raft's AppendEntries, from a peer.
    pub async fn receive_append(
        &self,
        request: AppendEntriesRequest<TypeConfig>,
    ) -> RaftAnswer<AppendEntriesResponse<TypeConfig>> {
        let answer = self.raft.append_entries(request).await.map_err(stopped)?;
        if !matches!(answer, AppendEntriesResponse::HigherVote(_)) {
            self.local.heard_of_raft_leader();
        }
        Ok(answer)
    }

    /// Raft's RequestVote, from a peer.
    pub async fn receive_vote(&self, request: VoteRequest<TypeConfig>) -> RaftAnswer<VoteResponse<TypeConfig>> {
        Ok(self.raft.vote(request).await.map_err(stopped)?)
    }

    /// The question whether this node would vote for a peer.
    pub async fn receive_pre_vote(&self, request: VoteRequest<TypeConfig>) -> RaftAnswer<VoteResponse<TypeConfig>> {
        Ok(self.raft.pre_vote(request).await.map_err(stopped)?)
    }

    /// Where the bytes of a peer's snapshot go until they are complete.
    pub async fn begin_snapshot(&self) -> std::io::Result<IncomingSnapshot> {
        self.snapshots.begin_incoming().await
    }

    /// A complete snapshot from a peer.
    pub async fn receive_snapshot(
        &self,
        head: SnapshotHead,
        incoming: IncomingSnapshot,
    ) -> RaftAnswer<SnapshotResponse<TypeConfig>> {
        let received = Arc::new(incoming.verify().await.map_err(|error| match error {
            StorageError::Damaged { why, .. } => refused(&why),
            error => refused(&error),
        })?);
        let found = received.description();
        if found.cluster_id != self.local.cluster_id() {
            return Err(refused(&"it is of another cluster"));
        }
        if found.meta != head.meta {
            return Err(refused(&"it is not the one that its head announces"));
        }
        self.local.heard_of_raft_leader();
        let snapshot = RaftSnapshot::Received(received.clone());
        let snapshot = SnapshotOf::<TypeConfig, RaftSnapshot> { meta: head.meta, snapshot };
        let answer = self.raft.install_full_snapshot(head.vote, snapshot).await.map_err(stopped);
        let clean_up = move || {
            drop(received);
            Ok(())
        };
        if let Err(error) = self.snapshots.blocking().run(clean_up).await {
            tracing::warn!(%error, "a snapshot that was received is not cleaned up");
        }
        Ok(answer?)
    }

    /// A raft leader's wish that this node takes over.
    pub async fn receive_transfer(
        &self,
        request: TransferLeaderRequest<TypeConfig>,
    ) -> RaftAnswer<TransferLeaderResponse<TypeConfig>> {
        Ok(self.raft.handle_transfer_leader(request).await.map_err(stopped)?)
    }
}

fn refused(reason: &dyn std::fmt::Display) -> Unanswered {
    tracing::warn!(%reason, "a snapshot from a peer was refused");
    Unanswered::SnapshotRefused(reason.to_string())
}
