//! Agrees on commands, then applies them. The only module that knows openraft's interface.
//!
//! ```text
//! propose ─► stamp ─► raft log ─► majority ─► StateMachine::apply ─► Replica ─► answer
//! judge   ─► read barrier ─► judge again                              (no log entry)
//! ```

mod error;
mod founding;
mod local;
mod network;
mod read_barrier;
mod receive;
mod reign;
mod replica;
mod settings;
mod silence;
mod state_machine;
mod status;

use std::sync::Arc;

use openraft::async_runtime::WatchReceiver;
use openraft::errors::ClientWriteError;
use openraft::impls::ProgressResponder;
use openraft::storage::RaftLogStorage;
use openraft::{ServerState, SnapshotPolicy};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use error::{BarrierFailed, ConsensusError, ProposeError};
pub use founding::Founding;
pub use local::LocalNode;
pub use receive::{RaftAnswer, Unanswered};
pub use replica::{Position, Replica};
pub use settings::ConsensusSettings;
pub use state_machine::{RaftSnapshot, StateMachine};
pub use status::RaftStatus;

use crate::clock::Clock;
use crate::domain::{Ask, Command, Judgement, Limits, Outcome, Refusal, Stamp, WallTime, millis};
use crate::peer::Transport;
use crate::raft_types::{Node, NodeId, Reply, TypeConfig};
use crate::storage::{DataDir, LogStore, SnapshotStore, Storage};
use network::PeerLinks;
use read_barrier::ReadBarrier;
use silence::Silence;

type Raft = openraft::Raft<TypeConfig, StateMachine>;

/// Who decides, as far as this node knows.
#[derive(Debug, Clone)]
pub enum RaftLeader {
    /// This node.
    Me,
    /// Another one.
    Other(NodeId, Node),
}

/// What a node needs to take part.
pub struct Parts {
    /// What it has on the disk.
    pub storage: Storage,
    /// How it is reached.
    pub node: Node,
    /// How it reaches others.
    pub transport: Transport,
    /// Its time.
    pub clock: Arc<dyn Clock>,
}

/// The handle to everything that is agreed on. Cheap to clone.
#[derive(Clone)]
pub struct Consensus {
    raft: Raft,
    local: Arc<LocalNode>,
    replica: Replica,
    barrier: ReadBarrier,
    log: LogStore,
    snapshots: SnapshotStore,
    clock: Arc<dyn Clock>,
    not_ready: Arc<Mutex<Option<String>>>,
    /// Whether the log held anything when this node started; raft's own word on it comes a moment later.
    had_log: bool,
    /// Nobody else may open the data directory for as long as anything here may write to it.
    _lock: Arc<DataDir>,
}

impl Consensus {
    /// Starts taking part.
    pub async fn start(parts: Parts, settings: ConsensusSettings) -> Result<Self, ConsensusError> {
        let Parts { storage, node, transport, clock } = parts;
        let Storage { identity, mut log, state: state_store, snapshots, recovered, lock } = storage;
        let had_log = log.get_log_state().await.map_err(stopped)?.last_log_id.is_some();
        let config = raft_config(&settings)?;
        let local = Arc::new(LocalNode::new(identity, node));
        let replica = Replica::new(recovered.rooms, recovered.applied, recovered.membership, clock.clone());
        let machine = StateMachine::new(local.clone(), replica.clone(), state_store, snapshots.clone());
        let (new_snapshot, wanted) = mpsc::channel(1);
        let silence = Arc::new(Silence::new(settings.raft_election_timeout));
        let links = PeerLinks {
            transport,
            local: local.clone(),
            snapshots: snapshots.clone(),
            new_snapshot,
            silence: silence.clone(),
        };
        let log_handle = log.clone();
        let raft = Raft::new(local.node_id(), Arc::new(config), links, log, machine).await.map_err(stopped)?;
        silence.begin(raft.metrics());
        tokio::spawn(make_snapshots(raft.clone(), wanted));
        let barrier = ReadBarrier::start(raft.clone(), settings.raft_election_timeout);
        let consensus = Self {
            raft,
            local,
            replica,
            barrier,
            log: log_handle,
            snapshots,
            clock,
            not_ready: Arc::default(),
            had_log,
            _lock: lock,
        };
        tokio::spawn(reign::attend(consensus.clone()));
        Ok(consensus)
    }

    fn raft(&self) -> &Raft {
        &self.raft
    }

    /// This node.
    pub fn local(&self) -> &LocalNode {
        &self.local
    }

    /// What has been applied here.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The wall clock, for display.
    pub fn wall_time(&self) -> WallTime {
        self.clock.wall_time()
    }

    /// Whether the log holds anything, or has.
    pub fn has_log(&self) -> bool {
        self.had_log || self.raft.metrics().borrow_watched().last_log_index.is_some()
    }

    /// Makes this node say that it is not ready, whatever raft says: it waits for a cluster, or it is stopping.
    pub fn set_not_ready(&self, reason: Option<String>) {
        *self.not_ready.lock() = reason;
    }

    /// Who decides, as far as this node knows.
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

    /// The raft term of this node's reign, if it believes to be raft leader.
    fn own_reign(&self) -> Option<u64> {
        self.raft.as_leader().ok().map(|raft_leader| raft_leader.term())
    }

    /// Judges a request by what is applied here. `None` if this node is not a ready raft leader.
    pub fn judge(&self, ask: &Ask, limits: Limits) -> Option<Judgement> {
        self.replica.judge(ask, self.own_reign()?, limits)
    }

    /// Returns once this node has proved that it was raft leader after the call began, and has applied
    /// everything that was committed by then.
    pub async fn read_barrier(&self, deadline: Instant) -> Result<(), BarrierFailed> {
        self.barrier.pass(deadline).await
    }

    /// Stamps a command, has it agreed on, and returns what applying it answered.
    ///
    /// # Errors
    /// `NotProposed`: the command is nowhere, and will be nowhere. `OutcomeUnknown`: anything may become of it.
    pub async fn propose(
        &self,
        command: impl FnOnce(Stamp) -> Command + Send,
        deadline: Instant,
    ) -> Result<Outcome, ProposeError> {
        let raft_term = self.own_reign().ok_or(ProposeError::NotProposed)?;
        let stamp = self.replica.stamp(raft_term).ok_or(ProposeError::NotProposed)?;
        let (responder, answer) = ProgressResponder::complete_only();
        let reign = openraft::vote::leader_id_std::CommittedLeaderId { term: raft_term };
        // A reign that ended since the stamp was made is noticed before the entry gets into the log.
        let write = self.raft.write(command(stamp)).responder(responder).with_leader(reign);
        let answered = tokio::time::timeout_at(deadline, async {
            write.await.map_err(|_| ProposeError::OutcomeUnknown)?;
            answer.await.map_err(|_| ProposeError::OutcomeUnknown)
        })
        .await
        .map_err(|_| ProposeError::OutcomeUnknown)??;
        match answered {
            Ok(response) => match response.data {
                Reply(Some(Outcome::Refused(Refusal::StaleStamp | Refusal::NotReady))) => {
                    Err(ProposeError::NotProposed)
                }
                Reply(Some(outcome)) => Ok(outcome),
                Reply(None) => Err(ProposeError::OutcomeUnknown),
            },
            // Of openraft's errors this is the one that it gives before it appends anything.
            Err(ClientWriteError::ForwardToLeader(_)) => Err(ProposeError::NotProposed),
            Err(_) => Err(ProposeError::OutcomeUnknown),
        }
    }

    /// Returns when the raft core has stopped, or its storage has failed, with the reason.
    pub async fn stopped(&self) -> ConsensusError {
        tokio::select! {
            biased;
            error = self.core_stopped() => error,
            failure = self.log.failed() => stopped(failure),
        }
    }

    async fn core_stopped(&self) -> ConsensusError {
        let mut metrics = self.raft.metrics();
        loop {
            if let Err(error) = &metrics.borrow_and_update().running_state {
                return stopped(error);
            }
            if metrics.changed().await.is_err() {
                return ConsensusError::Stopped("its task has ended".into());
            }
        }
    }

    /// Makes another node raft leader, if this one is. Returns when one has taken over, or at the deadline.
    pub async fn hand_over(&self, deadline: Instant) {
        let own_id = self.local.node_id();
        let successor = {
            let metrics = self.raft.metrics();
            let metrics = metrics.borrow_watched();
            if metrics.state != ServerState::Leader {
                return;
            }
            let voters: Vec<NodeId> = metrics.membership_config.membership().voter_ids().collect();
            // The one that has most of the log is raft leader soonest.
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
            tracing::warn!("no other node has taken over in time");
        }
    }

    /// Returns once this node knows another raft leader than `node_id`, or when raft has stopped.
    pub async fn superseded(&self, node_id: NodeId) {
        let mut metrics = self.raft.metrics();
        while metrics.borrow_and_update().current_leader.is_none_or(|id| id == node_id) {
            if metrics.changed().await.is_err() {
                return;
            }
        }
    }

    /// Stops taking part. What was acknowledged is on the disk already.
    pub async fn shut_down(&self) {
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(%error, "the raft core did not end in good order");
        }
    }
}

/// Has a snapshot made each time that one is wanted out of turn. Ends with the raft core.
async fn make_snapshots(raft: Raft, mut wanted: mpsc::Receiver<()>) {
    while wanted.recv().await.is_some() {
        if raft.trigger().snapshot().await.is_err() {
            return;
        }
    }
}

fn stopped(error: impl std::fmt::Display) -> ConsensusError {
    ConsensusError::Stopped(error.to_string())
}

fn raft_config(settings: &ConsensusSettings) -> Result<openraft::Config, ConsensusError> {
    let config = openraft::Config {
        cluster_name: "quorate".into(),
        heartbeat_interval: millis(settings.heartbeat),
        // Openraft believes a raft leader for the larger of the two, and only then starts the random wait: with
        // these a silence of 1.5 to 2 times the setting starts an election (measured: the documented meaning of
        // the two alone would have made it 2 to 3 times).
        election_timeout_min: millis(settings.raft_election_timeout / 2),
        election_timeout_max: millis(settings.raft_election_timeout),
        snapshot_policy: SnapshotPolicy::LogsSinceLast(settings.snapshot_every),
        max_in_snapshot_log_to_keep: settings.log_entries_kept,
        // A node that was cut off must not depose a healthy raft leader when it comes back.
        enable_pre_vote: Some(true),
        // The committed position isn't flushed, so a restarted raft leader could serve state older than it
        // has shown; and its reign would go on without an entry of its own to take a licence from.
        enable_leader_restore: Some(false),
        // A raft leader that is heard and hears nothing, or only after openraft has ended its heartbeats, would stay
        // and refuse every write. So it falls silent for as long as it takes the others to elect one of them, and
        // heartbeats come again in turn, for if they can't.
        quorum_loss_probe_interval: Some(millis(Silence::LASTS_ELECTION_TIMEOUTS * settings.raft_election_timeout)),
        ..openraft::Config::default()
    };
    config.validate().map_err(|error| ConsensusError::Setup(error.to_string()))
}
