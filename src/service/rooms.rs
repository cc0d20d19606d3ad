//! The rooms as one node serves them: renewals, resignations, reads and reports. Campaigns are in `campaign`.

use std::sync::Arc;
use std::time::Duration;

use super::decide::{Decided, Decider};
use super::error::ServiceError;
use super::holding::Holding;
use super::queues::Queues;
use super::secrets::LeaseSecret;
use super::settings::ServiceSettings;
use super::watch::RoomWatch;
use crate::consensus::Consensus;
use crate::domain::{
    Change, FencingToken, LeaseDuration, Metadata, Operation, Outcome, Refusal, Renew, Resign, RoomId, RoomView,
};
use crate::peer::Transport;
use crate::random::Random;
use crate::wire::{Member, NodeReport};

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// It shows the room at a moment after the request arrived.
    Linearizable,
    /// It shows the state that this node has applied, which may be old.
    Local,
}

/// The rooms as one node serves them. Cheap to clone.
#[derive(Clone)]
pub struct RoomService {
    pub(super) consensus: Consensus,
    pub(super) decider: Decider,
    pub(super) queues: Arc<Queues>,
    pub(super) random: Arc<dyn Random>,
    pub(super) settings: ServiceSettings,
}

impl RoomService {
    /// The service of one node.
    pub fn new(consensus: Consensus, transport: Transport, random: Arc<dyn Random>, settings: ServiceSettings) -> Self {
        let decider = Decider::new(consensus.clone(), transport, settings);
        Self { consensus, decider, queues: Arc::default(), random, settings }
    }

    /// The decider of this node, for the operations of peers.
    pub fn decider(&self) -> &Decider {
        &self.decider
    }

    /// Extends the caller's lease. Without a duration or metadata the lease keeps its own.
    ///
    /// # Errors
    /// `NotHolder` if the secret does not belong to the current lease. Otherwise see [`ServiceError`].
    pub async fn renew(
        &self,
        room: RoomId,
        secret: LeaseSecret,
        lease_duration: Option<LeaseDuration>,
        metadata: Option<Metadata>,
    ) -> Result<Decided<Holding>, ServiceError> {
        let duration = lease_duration.or_else(|| self.local_duration(&room)).unwrap_or(LeaseDuration::DEFAULT);
        // If the called node is cut off, its caller can still try the other two before the lease ends.
        let time = self.settings.request_deadline.min(duration.as_duration() / 3);
        let renew = Renew { room, secret_hash: secret.hash(), lease_duration, metadata };
        let decided = self.decider.submit(Operation::Change(Change::Renew(renew)), time).await?;
        decided.try_map(|outcome| match outcome {
            Outcome::Renewed(view) => Ok(Holding::renewed(view, secret)),
            Outcome::Refused(Refusal::NotHolder) => Err(ServiceError::NotHolder),
            other => Err(unexpected("renew", &other)),
        })
    }

    /// Ends the caller's lease. Returns the fencing token that it had.
    ///
    /// # Errors
    /// `NotHolder` if the secret does not belong to the current lease. Otherwise see [`ServiceError`].
    pub async fn resign(&self, room: RoomId, secret: &LeaseSecret) -> Result<Decided<FencingToken>, ServiceError> {
        let resign = Resign { room, secret_hash: secret.hash() };
        let operation = Operation::Change(Change::Resign(resign));
        let decided = self.decider.submit(operation, self.settings.request_deadline).await?;
        let maybe_done_before = decided.maybe_done_before;
        decided.try_map(|outcome| match outcome {
            Outcome::Resigned(token) => Ok(token),
            // The first of two tries may have ended the lease, so this is no proof that the caller had lost it.
            Outcome::Refused(Refusal::NotHolder) if maybe_done_before => Err(ServiceError::OutcomeUnknown),
            Outcome::Refused(Refusal::NotHolder) => Err(ServiceError::NotHolder),
            other => Err(unexpected("resign", &other)),
        })
    }

    /// Shows a room.
    ///
    /// # Errors
    /// `Unavailable` if there is no quorum for a linearizable read. A local read never fails.
    pub async fn view(&self, room: &RoomId, consistency: Consistency) -> Result<Decided<RoomView>, ServiceError> {
        match consistency {
            Consistency::Local => Ok(Decided {
                answer: self.consensus.replica().view(room),
                decided_by: self.consensus.local().node().name.clone(),
                maybe_done_before: false,
            }),
            Consistency::Linearizable => {
                let operation = Operation::View(room.clone());
                let decided = self.decider.submit(operation, self.settings.request_deadline).await?;
                decided.try_map(|outcome| match outcome {
                    Outcome::Viewed(view) => Ok(view),
                    other => Err(unexpected("view", &other)),
                })
            }
        }
    }

    /// A stream of views of a room: one now, and one after each change.
    pub fn watch(&self, room: &RoomId) -> RoomWatch {
        RoomWatch::new(self.consensus.clone(), room)
    }

    /// This node's report about itself and its cluster.
    pub fn status(&self) -> NodeReport {
        let raft = self.consensus.status();
        let position = self.consensus.replica().position();
        let local = self.consensus.local();
        let name_of = |id| raft.members.iter().find(|(member, ..)| *member == id).map(|(_, node, _)| node.name.clone());
        let readiness = self.consensus.readiness();
        NodeReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: local.node().name.clone(),
            node_id: local.node_id(),
            cluster_id: local.cluster_id().map(|id| id.to_string()),
            role: raft.role.to_owned(),
            raft_leader: raft.raft_leader.and_then(name_of),
            raft_term: raft.raft_term,
            last_log_index: raft.last_log_index,
            committed_index: raft.committed_index,
            applied_index: position.applied.map_or(0, |log_id| log_id.index),
            state_digest: position.digest.to_string(),
            live_leases: position.live_leases,
            log_entries_written: raft.log_entries_written,
            log_flushes: raft.log_flushes,
            members: raft
                .members
                .iter()
                .map(|(node_id, node, voter)| Member {
                    name: node.name.clone(),
                    node_id: *node_id,
                    url: node.client_url.clone(),
                    peer: node.peer_address.clone(),
                    voter: *voter,
                })
                .collect(),
            ready: readiness.is_ok(),
            reason: readiness.err(),
        }
    }

    /// Whether the process and its storage work, whatever the other nodes do.
    pub fn is_alive(&self) -> bool {
        self.consensus.is_running()
    }

    /// Whether this node can serve a linearizable request now.
    ///
    /// # Errors
    /// The reason if it cannot, in words for people.
    pub fn readiness(&self) -> Result<(), String> {
        self.consensus.readiness()
    }

    fn local_duration(&self, room: &RoomId) -> Option<LeaseDuration> {
        self.consensus.replica().view(room).lease.map(|lease| lease.lease_duration)
    }

    pub(super) fn capacity_reached(&self) -> ServiceError {
        let (next_deadline, now) = self.consensus.replica().next_deadline();
        let retry_after = next_deadline.map_or(Duration::from_secs(1), |deadline| deadline.since(now));
        ServiceError::CapacityReached { retry_after: retry_after.max(Duration::from_millis(100)) }
    }
}

/// An outcome of the wrong kind. Only a raft leader of another version could give it.
pub(super) fn unexpected(operation: &str, outcome: &Outcome) -> ServiceError {
    tracing::error!(operation, ?outcome, "the raft leader's outcome does not belong to the operation");
    ServiceError::OutcomeUnknown
}
