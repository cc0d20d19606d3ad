//! Puts the parts of the consensus together and starts its tasks.

use std::sync::Arc;

use openraft::SnapshotPolicy;
use openraft::storage::RaftLogStorage;
use tokio::sync::mpsc;

use super::ConsensusSettings;
use super::error::ConsensusError;
use super::handle::{Consensus, Raft};
use super::inbox::Inbox;
use super::last_heard::LastHeard;
use super::local::LocalNode;
use super::network::PeerLinks;
use super::read_barrier::ReadBarrier;
use super::reign;
use super::replica::Replica;
use super::silence::Silence;
use super::state_machine::StateMachine;
use crate::clock::Clock;
use crate::domain::millis;
use crate::peer::Transport;
use crate::raft_types::Node;
use crate::storage::Storage;

/// The parts that a node needs to take part in a cluster.
pub struct Parts {
    /// The contents of its data directory.
    pub storage: Storage,
    /// Its label and addresses.
    pub node: Node,
    /// The way to its peers.
    pub transport: Transport,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
}

/// Starts to take part in the cluster.
///
/// # Errors
/// `Setup` if the settings contradict each other, `Stopped` if the raft core does not start.
pub async fn start(parts: Parts, settings: ConsensusSettings) -> Result<Consensus, ConsensusError> {
    let Parts { storage, node, transport, clock } = parts;
    let Storage { identity, mut log, state: state_store, snapshots, recovered, lock } = storage;
    let had_log = log.get_log_state().await.map_err(ConsensusError::stopped)?.last_log_id.is_some();
    let config = raft_config(&settings)?;
    let local = Arc::new(LocalNode::new(identity, node));
    let replica = Replica::new(recovered.rooms, recovered.applied, recovered.membership, clock.clone());
    let machine = StateMachine::new(local.clone(), replica.clone(), state_store, snapshots.clone());
    let (new_snapshot, wanted) = mpsc::channel(1);
    let silence = Arc::new(Silence::new(settings.raft_election_timeout));
    let (sender, to_send) = (local.clone(), snapshots.clone());
    let links = PeerLinks { transport, local: sender, snapshots: to_send, new_snapshot, silence: silence.clone() };
    let raft = Raft::new(local.node_id(), Arc::new(config), links, log.clone(), machine);
    let raft = raft.await.map_err(ConsensusError::stopped)?;
    silence.begin(raft.metrics());
    tokio::spawn(make_snapshots(raft.clone(), wanted));
    let raft_leader_heard = Arc::<LastHeard>::default();
    let consensus = Consensus {
        barrier: ReadBarrier::start(raft.clone(), settings.raft_election_timeout),
        inbox: Inbox::new(raft.clone(), local.clone(), raft_leader_heard.clone(), snapshots),
        raft,
        local,
        raft_leader_heard,
        replica,
        log,
        clock,
        held_back: Arc::default(),
        had_log,
        _lock: lock,
    };
    tokio::spawn(reign::attend(consensus.clone()));
    Ok(consensus)
}

/// Makes a snapshot each time that one is wanted out of turn. Ends with the raft core.
async fn make_snapshots(raft: Raft, mut wanted: mpsc::Receiver<()>) {
    while wanted.recv().await.is_some() {
        if raft.trigger().snapshot().await.is_err() {
            return;
        }
    }
}

fn raft_config(settings: &ConsensusSettings) -> Result<openraft::Config, ConsensusError> {
    let config = openraft::Config {
        cluster_name: "quorate".into(),
        heartbeat_interval: millis(settings.heartbeat),
        // Openraft believes a raft leader for the larger of the two times, and only then starts its random wait. With
        // these values a silence of 1.5 to 2 times the setting starts a raft election (measured). With the documented
        // meaning of the two it would be 2 to 3 times.
        election_timeout_min: millis(settings.raft_election_timeout / 2),
        election_timeout_max: millis(settings.raft_election_timeout),
        snapshot_policy: SnapshotPolicy::LogsSinceLast(settings.snapshot_every),
        max_in_snapshot_log_to_keep: settings.log_entries_kept,
        // A node that was cut off must not depose a healthy raft leader when it comes back.
        enable_pre_vote: Some(true),
        // The committed position is not flushed. So a raft leader that resumed its reign after a restart could show
        // older state than before, and it would have no entry of its own to take a licence from.
        enable_leader_restore: Some(false),
        // A raft leader whose replies are lost would stay in office and refuse every write. So without a quorum for
        // this long it stops its heartbeats until the others can have elected one of them. Then it resumes, in case
        // they cannot. See `silence`, which does the same for entries.
        quorum_loss_probe_interval: Some(millis(Silence::LASTS_ELECTION_TIMEOUTS * settings.raft_election_timeout)),
        ..openraft::Config::default()
    };
    config.validate().map_err(|error| ConsensusError::Setup(error.to_string()))
}
