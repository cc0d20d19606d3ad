//! Raft messages from peers, on their way to openraft.

use openraft::async_runtime::WatchReceiver;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;

use super::{Consensus, ConsensusError, stopped};
use crate::peer::SnapshotHead;
use crate::planted::{Bug, is_planted};
use crate::raft_types::TypeConfig;
use crate::storage::{IncomingSnapshot, SnapshotFile};

/// A raft message's answer, or why this node gives none.
pub type RaftAnswer<T> = Result<T, ConsensusError>;

impl Consensus {
    /// Raft's AppendEntries, from a peer.
    pub async fn receive_append(
        &self,
        request: AppendEntriesRequest<TypeConfig>,
    ) -> RaftAnswer<AppendEntriesResponse<TypeConfig>> {
        if is_planted(Bug::AcknowledgedBeforeAppended) && self.would_append(&request) {
            let raft = self.raft.clone();
            tokio::spawn(async move { raft.append_entries(request).await });
            return Ok(AppendEntriesResponse::Success);
        }
        let answer = self.raft.append_entries(request).await.map_err(stopped)?;
        if !matches!(answer, AppendEntriesResponse::HigherVote(_)) {
            self.local.heard_of_raft_leader();
        }
        Ok(answer)
    }

    /// Whether nothing speaks against the entries: only then is the planted bug one of order alone.
    fn would_append(&self, request: &AppendEntriesRequest<TypeConfig>) -> bool {
        let metrics = self.raft.metrics().borrow_watched().clone();
        let is_next = metrics.last_applied == request.prev_log_id
            && metrics.last_log_index == request.prev_log_id.map(|before| before.index);
        request.vote == metrics.vote && is_next && !request.entries.is_empty()
    }

    /// Raft's RequestVote, from a peer.
    pub async fn receive_vote(&self, request: VoteRequest<TypeConfig>) -> RaftAnswer<VoteResponse<TypeConfig>> {
        self.raft.vote(request).await.map_err(stopped)
    }

    /// The question whether this node would vote for a peer.
    pub async fn receive_pre_vote(&self, request: VoteRequest<TypeConfig>) -> RaftAnswer<VoteResponse<TypeConfig>> {
        self.raft.pre_vote(request).await.map_err(stopped)
    }

    /// Where the bytes of a peer's snapshot go until they are complete.
    pub async fn begin_snapshot(&self) -> std::io::Result<IncomingSnapshot> {
        self.snapshots.receive().await
    }

    /// A complete snapshot from a peer.
    pub async fn receive_snapshot(
        &self,
        head: SnapshotHead,
        incoming: IncomingSnapshot,
    ) -> RaftAnswer<SnapshotResponse<TypeConfig>> {
        let (bytes, path) = (incoming.bytes(), incoming.keep());
        let snapshot = SnapshotOf::<TypeConfig, SnapshotFile> {
            snapshot: SnapshotFile { path, cluster_id: self.local.cluster_id(), meta: head.meta.clone(), bytes },
            meta: head.meta,
        };
        self.local.heard_of_raft_leader();
        self.raft.install_full_snapshot(head.vote, snapshot).await.map_err(stopped)
    }

    /// A raft leader's wish that this node takes over.
    pub async fn receive_transfer(
        &self,
        request: TransferLeaderRequest<TypeConfig>,
    ) -> RaftAnswer<TransferLeaderResponse<TypeConfig>> {
        self.raft.handle_transfer_leader(request).await.map_err(stopped)
    }
}
