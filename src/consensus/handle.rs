//! The handle to everything that the cluster agrees on.
//!
//! The methods that report on this node are in `status`.

use std::sync::Arc;

use openraft::ServerState;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::ClientWriteError;
use openraft::impls::ProgressResponder;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::ConsensusError;
use super::inbox::Inbox;
use super::last_heard::LastHeard;
use super::local::LocalNode;
use super::read_barrier::ReadBarrier;
use super::replica::Replica;
use super::state_machine::StateMachine;
use crate::clock::Clock;
use crate::domain::{Change, Command, Judgement, Limits, Outcome, Refusal, RoomId, RoomView, Stamp, WallTime};
use crate::peer::Undecided;
use crate::raft_types::{Node, NodeId, TypeConfig};
use crate::storage::{DataDir, LogStore};

/// The raft core.
pub(super) type Raft = openraft::Raft<TypeConfig, StateMachine>;

/// The node that this one believes is raft leader.
#[derive(Debug, Clone)]
pub enum RaftLeader {
    /// This node.
    Me,
    /// Another node.
    Other(NodeId, Node),
}

/// The handle to everything that the cluster agrees on. Cheap to clone.
#[derive(Clone)]
pub struct Consensus {
    pub(super) raft: Raft,
    pub(super) local: Arc<LocalNode>,
    pub(super) raft_leader_heard: Arc<LastHeard>,
    pub(super) replica: Replica,
    pub(super) barrier: ReadBarrier,
    pub(super) inbox: Inbox,
    pub(super) log: LogStore,
    pub(super) clock: Arc<dyn Clock>,
    /// The reason why this node reports that it is not ready, whatever raft says. `None` if it may serve.
    pub(super) held_back: Arc<Mutex<Option<String>>>,
    /// The log held something when this node started. Raft itself reports that a moment later.
    pub(super) had_log: bool,
    /// No other process may open the data directory while a task of this one may write to it.
    pub(super) _lock: Arc<DataDir>,
}

impl Consensus {
    /// This node's identity and addresses.
    pub fn local(&self) -> &LocalNode {
        &self.local
    }

    /// The state as applied on this node.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The receiver of raft messages from peers.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// The wall clock, for display and for the first fencing floor.
    pub fn wall_time(&self) -> WallTime {
        self.clock.wall_time()
    }

    /// Whether the log holds an entry, or held one when this node started.
    pub fn has_log(&self) -> bool {
        self.had_log || self.raft.metrics().borrow_watched().last_log_index.is_some()
    }

    /// Makes this node report that it is not ready, for this reason: it waits for a cluster, or it stops.
    pub fn hold_back(&self, reason: impl Into<String>) {
        *self.held_back.lock() = Some(reason.into());
    }

    /// Ends [`Consensus::hold_back`].
    pub fn serve(&self) {
        *self.held_back.lock() = None;
    }

    /// The node that this one believes is raft leader. `None` while it knows of none.
    pub fn raft_leader(&self) -> Option<RaftLeader> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let raft_leader = metrics.current_leader?;
        if raft_leader == self.local.node_id() {
            return Some(RaftLeader::Me);
        }
        let node = metrics.membership_config.membership().get_node(&raft_leader)?;
        Some(RaftLeader::Other(raft_leader, node.clone()))
    }

    /// The raft term of this node's reign, if it believes that it is raft leader.
    pub(super) fn own_reign(&self) -> Option<u64> {
        self.raft.as_leader().ok().map(|raft_leader| raft_leader.term())
    }

    /// Judges a change by the state as applied here. `None` if this node is not a ready raft leader.
    pub fn judge(&self, change: &Change, limits: Limits) -> Option<Judgement> {
        self.replica.judge(change, self.own_reign()?, limits)
    }

    /// A room by the raft leader's reading of log time. `None` if this node is not a ready raft leader.
    pub fn view(&self, room: &RoomId) -> Option<RoomView> {
        self.replica.view_by_raft_leader(room, self.own_reign()?)
    }

    /// Returns once two things are certain: this node was raft leader after the call began, and everything that was
    /// committed by then has been applied here.
    ///
    /// # Errors
    /// `NothingProposed` if that could not be confirmed before the deadline.
    pub async fn read_barrier(&self, deadline: Instant) -> Result<(), Undecided> {
        self.barrier.pass(deadline).await
    }

    /// Stamps a command, replicates it, and returns the outcome of applying it.
    ///
    /// # Errors
    /// `NothingProposed`: the command changes no room. It will be in no log, or every node has refused it.
    /// `OutcomeUnknown`: it may be committed or not.
    pub async fn propose(
        &self,
        command: impl FnOnce(Stamp) -> Command + Send,
        deadline: Instant,
    ) -> Result<Outcome, Undecided> {
        let raft_term = self.own_reign().ok_or(Undecided::NothingProposed)?;
        let stamp = self.replica.stamp(raft_term).ok_or(Undecided::NothingProposed)?;
        let (responder, outcome) = ProgressResponder::complete_only();
        let reign = openraft::vote::leader_id_std::CommittedLeaderId { term: raft_term };
        // If the reign has ended since the stamp was made, openraft notices it before the entry gets into the log.
        let write = self.raft.write(command(stamp)).responder(responder).with_leader(reign);
        let answered = tokio::time::timeout_at(deadline, async {
            write.await.map_err(|_| Undecided::OutcomeUnknown)?;
            outcome.await.map_err(|_| Undecided::OutcomeUnknown)
        })
        .await
        .map_err(|_| Undecided::OutcomeUnknown)??;
        match answered {
            Ok(response) => match response.data {
                // Such a command changed no room, on any node.
                Outcome::Refused(Refusal::StaleStamp | Refusal::NotReady) => Err(Undecided::NothingProposed),
                outcome => Ok(outcome),
            },
            // Openraft returns this error before it appends anything. Every other error may come later.
            Err(ClientWriteError::ForwardToLeader(_)) => Err(Undecided::NothingProposed),
            Err(_) => Err(Undecided::OutcomeUnknown),
        }
    }

    /// Returns when the raft core has stopped or its storage has failed, with the reason.
    pub async fn stopped(&self) -> ConsensusError {
        tokio::select! {
            biased;
            error = self.core_stopped() => error,
            failure = self.log.failed() => ConsensusError::stopped(failure),
        }
    }

    async fn core_stopped(&self) -> ConsensusError {
        let mut metrics = self.raft.metrics();
        loop {
            if let Err(error) = &metrics.borrow_and_update().running_state {
                return ConsensusError::stopped(error);
            }
            if metrics.changed().await.is_err() {
                return ConsensusError::stopped("its task has ended");
            }
        }
    }

    /// Makes another node raft leader, if this node is raft leader. Returns when another node has taken over, or at the
    /// deadline.
    pub async fn hand_over(&self, deadline: Instant) {
        let own_id = self.local.node_id();
        let successor = {
            let metrics = self.raft.metrics();
            let metrics = metrics.borrow_watched();
            if metrics.state != ServerState::Leader {
                return;
            }
            let voters: Vec<NodeId> = metrics.membership_config.membership().voter_ids().collect();
            // The voter with the longest log can take over soonest.
            let replicated = metrics.replication.clone().unwrap_or_default();
            replicated
                .into_iter()
                .filter(|(id, _)| *id != own_id && voters.contains(id))
                .max_by_key(|(_, log_id)| *log_id)
        };
        let Some((successor, _)) = successor else { return };
        tracing::info!(successor, "handing raft leadership over");
        if self.raft.trigger().transfer_leader(successor).await.is_err() {
            return;
        }
        if tokio::time::timeout_at(deadline, self.superseded(own_id)).await.is_err() {
            tracing::warn!("no other node took over raft leadership in time");
        }
    }

    /// Returns once this node knows a raft leader other than `node_id`, or when raft has stopped.
    pub async fn superseded(&self, node_id: NodeId) {
        let mut metrics = self.raft.metrics();
        while metrics.borrow_and_update().current_leader.is_none_or(|id| id == node_id) {
            if metrics.changed().await.is_err() {
                return;
            }
        }
    }

    /// Stops taking part in the cluster. Everything that was acknowledged is on the disk already.
    pub async fn shut_down(&self) {
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(%error, "the raft core did not stop cleanly");
        }
    }
}
