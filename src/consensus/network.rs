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

use super::LocalNode;
use super::silence::Silence;
use super::state_machine::RaftSnapshot;
use crate::peer::{PeerError, SnapshotHead, Transport, path, write_snapshot};
use crate::raft_types::{Node, NodeId, TypeConfig, Vote};
use crate::storage::SnapshotStore;

/// How long an append may take, in heartbeat intervals.
///
/// Openraft would give it one. To nodes that are further away, or whose disk is slower, nothing would ever be
/// replicated, while their heartbeats, of which it cuts each off by itself, keep the raft leader in office.
const APPEND_LASTS_HEARTBEATS: u32 = 10;

/// Makes a link to each peer.
pub struct PeerLinks {
    /// How bytes get there.
    pub transport: Transport,
    /// Who sends them.
    pub local: Arc<LocalNode>,
    /// Where snapshots to be sent are.
    pub snapshots: SnapshotStore,
    /// Has a new snapshot made, since the newest one is of no use any more.
    pub new_snapshot: mpsc::Sender<()>,
    /// When no entries are sent.
    pub silence: Arc<Silence>,
}

impl RaftNetworkFactory<TypeConfig> for PeerLinks {
    type Network = PeerLink;

    async fn new_client(&mut self, target: NodeId, node: &Node) -> PeerLink {
        PeerLink {
            transport: self.transport.clone(),
            local: self.local.clone(),
            snapshots: self.snapshots.clone(),
            new_snapshot: self.new_snapshot.clone(),
            silence: self.silence.clone(),
            target,
            address: node.peer_address.clone(),
        }
    }
}

/// A link to one peer.
pub struct PeerLink {
    transport: Transport,
    local: Arc<LocalNode>,
    snapshots: SnapshotStore,
    new_snapshot: mpsc::Sender<()>,
    silence: Arc<Silence>,
    target: NodeId,
    address: String,
}

type RpcResult<T> = Result<T, RPCError<TypeConfig>>;

impl PeerLink {
    async fn call<Request: Serialize, Response: DeserializeOwned>(
        &self,
        action: RPCTypes,
        path: &str,
        request: &Request,
        timeout: Duration,
    ) -> RpcResult<Response> {
        let sender = self.local.sender();
        self.transport.call(&self.address, path, sender, self.target, request, timeout).await.map_err(|error| {
            match error {
                // Openraft backs off from a peer that can't be reached, and tries a slow one again at once.
                PeerError::Unreachable { .. } | PeerError::Refused { .. } => {
                    RPCError::Unreachable(Unreachable::new(&error))
                }
                PeerError::NoAnswer { .. } => {
                    RPCError::Timeout(Timeout { action, id: sender.node_id, target: self.target, timeout })
                }
                PeerError::Malformed { .. } => RPCError::Network(NetworkError::new(&error)),
            }
        })
    }

    async fn send_snapshot(
        &self,
        vote: Vote,
        snapshot: SnapshotOf<TypeConfig, RaftSnapshot>,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let file = snapshot.snapshot.file();
        let timeout = snapshot_timeout(file.bytes);
        let head = SnapshotHead { vote, meta: file.meta.clone() };
        let content = match self.snapshots.send(file).await {
            Ok(content) => content,
            Err(error) => {
                self.replace_if_damaged().await;
                return Err(unsent(&error));
            }
        };
        let body = write_snapshot(&head, content).map_err(|error| unsent(&error))?;
        let to = Some(self.target);
        let sent = self.transport.send(&self.address, path::SNAPSHOT, self.local.sender(), to, body, timeout).await;
        // Without a connection nothing was read, and nobody has found fault with it.
        if sent.as_ref().is_err_and(|error| !matches!(error, PeerError::Unreachable { .. })) {
            self.replace_if_damaged().await;
        }
        sent.map_err(|error| unsent(&error))
    }

    /// A snapshot that has rotted on the disk would be sent, and refused, until it is time for the next one.
    async fn replace_if_damaged(&self) {
        let snapshots = self.snapshots.clone();
        if let Err(error) = self.snapshots.blocking().run(move || Ok(snapshots.check_current()?)).await {
            tracing::warn!(%error, "the newest snapshot can't be sent; another one is made");
            // If one is wanted already, that is enough.
            let _ = self.new_snapshot.try_send(());
        }
    }
}

/// Openraft backs off, and tries again with what is the newest snapshot by then.
fn unsent(error: &(impl std::error::Error + 'static)) -> StreamingError<TypeConfig> {
    StreamingError::Unreachable(Unreachable::new(error))
}

/// How long a snapshot of so many bytes may take to be sent and installed. Openraft has one limit for snapshots of every
/// size, which would keep a large one from ever getting over a slow link; it is not asked.
///
/// No second snapshot is sent meanwhile: a purge that overtakes an apply has stopped openraft cores (openraft issue
/// 2116). But a raft follower whose answer was lost, as by a power cut after the last byte, gets nothing else meanwhile;
/// and a cluster with one such node stands still when it loses another.
fn snapshot_timeout(bytes: u64) -> Duration {
    /// For a disk that is slow to flush.
    const AT_LEAST: Duration = Duration::from_secs(5);
    /// A tenth of what a bad link carries.
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
        if self.silence.is_due() {
            let silent = AnyError::error("this raft leader hears nothing, and makes way for another");
            return Err(RPCError::Unreachable(Unreachable::new(&silent)));
        }
        let timeout = option.hard_ttl() * APPEND_LASTS_HEARTBEATS;
        self.call(RPCTypes::AppendEntries, path::APPEND, &request, timeout).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        self.call(RPCTypes::Vote, path::VOTE, &request, option.hard_ttl()).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        self.call(RPCTypes::Vote, path::PRE_VOTE, &request, option.hard_ttl()).await
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
        self.call(RPCTypes::TransferLeader, path::TRANSFER, &request, option.hard_ttl()).await
    }
}

#[cfg(test)]
mod tests;
