//! Raft messages over [`crate::peer`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use openraft::AnyError;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{RPCOption, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, VoteRequest, VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::local::LocalNode;
use super::plausible::{self, RaftMessage, Untrue};
use super::silence::Silence;
use super::state_machine::RaftSnapshot;
use crate::peer::{PeerError, SnapshotHead, Transport, path, write_snapshot};
use crate::raft_types::{Node, NodeId, TypeConfig, Vote};
use crate::storage::SnapshotStore;

/// The timeout of an append, in heartbeat intervals.
///
/// Openraft would give it one interval. If a node were further away than that, or its disk slower, nothing would ever
/// be replicated to it. Its heartbeats would still keep the raft leader in office, because each has its own timeout.
const APPEND_LASTS_HEARTBEATS: u32 = 10;

/// Makes a link to each peer.
#[derive(Clone)]
pub struct PeerLinks {
    /// The way to the peers.
    pub transport: Transport,
    /// This node, the sender.
    pub local: Arc<LocalNode>,
    /// The snapshots to send.
    pub snapshots: SnapshotStore,
    /// Asks for a new snapshot, because the newest one is damaged.
    pub new_snapshot: mpsc::Sender<()>,
    /// The times at which no entries are sent.
    pub silence: Arc<Silence>,
}

impl RaftNetworkFactory<TypeConfig> for PeerLinks {
    type Network = PeerLink;

    async fn new_client(&mut self, target: NodeId, node: &Node) -> PeerLink {
        PeerLink { shared: self.clone(), target, address: node.peer_address.clone() }
    }
}

/// A link to one peer.
pub struct PeerLink {
    shared: PeerLinks,
    target: NodeId,
    address: String,
}

type RpcResult<T> = Result<T, RPCError<TypeConfig>>;

impl PeerLink {
    async fn call<Request: Serialize, Response: DeserializeOwned + RaftMessage>(
        &self,
        action: RPCTypes,
        path: &str,
        own: &Vote,
        request: &Request,
        timeout: Duration,
    ) -> RpcResult<Response> {
        let sender = self.shared.local.sender();
        let answer = self.shared.transport.call(&self.address, path, sender, self.target, request, timeout).await;
        let answer: Response = answer.map_err(|error| {
            match error {
                // Openraft backs off from a peer that it cannot reach. It tries a slow one again at once.
                PeerError::Unreachable { .. } | PeerError::Rejected { .. } => {
                    RPCError::Unreachable(Unreachable::new(&error))
                }
                PeerError::NoAnswer { .. } => {
                    RPCError::Timeout(Timeout { action, id: sender.node_id, target: self.target, timeout })
                }
                PeerError::Malformed { .. } => RPCError::Network(NetworkError::new(&error)),
            }
        })?;
        plausible::check(&answer, own.leader_id.term).map_err(|error| self.untrue(&error))?;
        Ok(answer)
    }

    /// An answer that openraft must not get.
    fn untrue(&self, error: &Untrue) -> RPCError<TypeConfig> {
        tracing::warn!(peer = %self.address, %error, "an answer of a peer was rejected");
        RPCError::Network(NetworkError::new(error))
    }

    async fn send_snapshot(
        &self,
        vote: Vote,
        snapshot: SnapshotOf<TypeConfig, RaftSnapshot>,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let file = snapshot.snapshot.file();
        let timeout = snapshot_timeout(file.bytes);
        let head = SnapshotHead { vote, meta: file.meta.clone() };
        let content = match self.shared.snapshots.read_chunks(file).await {
            Ok(content) => content,
            Err(error) => {
                self.replace_if_damaged().await;
                return Err(unsent(&error));
            }
        };
        let body = write_snapshot(&head, content).map_err(|error| unsent(&error))?;
        let to = Some(self.target);
        let sent = self
            .shared
            .transport
            .send(&self.address, path::SNAPSHOT, self.shared.local.sender(), to, body, timeout)
            .await;
        // Without a connection the peer read nothing, so the failure says nothing about the snapshot.
        if sent.as_ref().is_err_and(|error| !matches!(error, PeerError::Unreachable { .. })) {
            self.replace_if_damaged().await;
        }
        let answer = sent.map_err(|error| unsent(&error))?;
        plausible::check(&answer, vote.leader_id.term).map_err(|error| unsent(&error))?;
        Ok(answer)
    }

    /// Asks for a new snapshot if the newest one is damaged on the disk. Otherwise the damaged one would be sent and
    /// rejected again and again, until the next one is due.
    async fn replace_if_damaged(&self) {
        let snapshots = self.shared.snapshots.clone();
        if let Err(error) = self.shared.snapshots.blocking().run(move || Ok(snapshots.check_current()?)).await {
            tracing::warn!(%error, "the newest snapshot is damaged and cannot be sent; a new one is made");
            // If the channel is full, a request is waiting already, and one is enough.
            let _ = self.shared.new_snapshot.try_send(());
        }
    }
}

/// Makes openraft back off, and then try again with the newest snapshot of that time.
fn unsent(error: &(impl std::error::Error + 'static)) -> StreamingError<TypeConfig> {
    StreamingError::Unreachable(Unreachable::new(error))
}

/// The timeout for sending and installing a snapshot of this size. Openraft's own timeout is the same for every size,
/// and a large snapshot would never get over a slow link. So it is not used.
///
/// No second snapshot is sent before the timeout, because a purge that overtakes an apply has stopped openraft cores
/// (openraft issue 2116). The price: if the raft follower's answer is lost, for example by a power cut after the last
/// byte, that node gets nothing else until the timeout. If the cluster loses another node in that time, it stands
/// still.
fn snapshot_timeout(bytes: u64) -> Duration {
    /// Enough for a disk that is slow to flush.
    const AT_LEAST: Duration = Duration::from_secs(5);
    /// About 8 Mbit/s, a tenth of the speed of a bad link.
    const BYTES_A_SECOND: u64 = 1 << 20;
    AT_LEAST + Duration::from_secs(bytes / BYTES_A_SECOND)
}

impl RaftNetworkV2<TypeConfig> for PeerLink {
    type SnapshotData = RaftSnapshot;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<AppendEntriesResponse<TypeConfig>> {
        if self.shared.silence.is_due() {
            let silent = AnyError::error("this raft leader has no quorum and makes way for another");
            return Err(RPCError::Unreachable(Unreachable::new(&silent)));
        }
        let timeout = option.hard_ttl() * APPEND_LASTS_HEARTBEATS;
        let first = request.prev_log_id;
        let last = request.entries.last().map(|entry| entry.log_id).or(first);
        let answer = self.call(RPCTypes::AppendEntries, path::APPEND, &request.vote, &request, timeout).await?;
        plausible::check_answer(&answer, first, last).map_err(|error| self.untrue(&error))?;
        Ok(answer)
    }

    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        self.call(RPCTypes::Vote, path::VOTE, &request.vote, &request, option.hard_ttl()).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        self.call(RPCTypes::Vote, path::PRE_VOTE, &request.vote, &request, option.hard_ttl()).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: SnapshotOf<TypeConfig, RaftSnapshot>,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        tokio::select! {
            biased;
            closed = cancel => Err(StreamingError::Closed(closed)),
            sent = self.send_snapshot(vote, snapshot) => sent,
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<openraft::raft::TransferLeaderResponse<TypeConfig>> {
        self.call(RPCTypes::TransferLeader, path::TRANSFER, request.from_leader(), &request, option.hard_ttl()).await
    }
}

#[cfg(test)]
mod tests;
