//! This node's report about itself: its place in the cluster, and whether it can serve.

use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::{Instant as _, ServerState};

use super::handle::Consensus;
use crate::raft_types::{Node, NodeId};

/// This node's place in its cluster.
#[derive(Debug, Clone)]
pub struct RaftStatus {
    /// `raft_leader`, `raft_follower`, `raft_candidate` or `raft_learner`.
    pub role: &'static str,
    /// The node that this one believes is raft leader. The belief may be out of date: only a committed command or a
    /// read barrier proves it.
    pub raft_leader: Option<NodeId>,
    /// This node's raft term.
    pub raft_term: u64,
    /// Index of the last entry in this node's log.
    pub last_log_index: u64,
    /// Index of the last entry that this node knows to be committed.
    pub committed_index: u64,
    /// Entries written to this node's log since its start.
    pub log_entries_written: u64,
    /// Flushes of this node's log to the disk since its start.
    pub log_flushes: u64,
    /// The members. The last field says whether a member votes.
    pub members: Vec<(NodeId, Node, bool)>,
}

impl Consensus {
    /// A node that hears nothing from its raft leader for longer than this is not ready. An ordinary raft election is
    /// shorter, so it does not change readiness.
    const SILENCE_MAX: Duration = Duration::from_secs(3);

    /// A node is ready while at most this many committed entries wait to be applied.
    const LAG_MAX: u64 = 1_000;

    /// This node's place in its cluster now.
    pub fn status(&self) -> RaftStatus {
        let log = self.log.stats();
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let voters: Vec<NodeId> = membership.voter_ids().collect();
        RaftStatus {
            log_entries_written: log.entries_appended,
            log_flushes: log.flushes,
            role: match metrics.state {
                ServerState::Leader => "raft_leader",
                ServerState::Candidate => "raft_candidate",
                ServerState::Learner => "raft_learner",
                ServerState::Follower | ServerState::Shutdown => "raft_follower",
            },
            raft_leader: metrics.current_leader,
            raft_term: metrics.current_term,
            last_log_index: metrics.last_log_index.unwrap_or_default(),
            committed_index: metrics.local_committed.map_or(0, |log_id| log_id.index),
            members: membership.nodes().map(|(id, node)| (*id, node.clone(), voters.contains(id))).collect(),
        }
    }

    /// Whether the raft core runs.
    pub fn is_running(&self) -> bool {
        self.raft.metrics().borrow_watched().running_state.is_ok()
    }

    /// Whether this node can serve now.
    ///
    /// # Errors
    /// The reason if it cannot, in words for people.
    pub fn readiness(&self) -> Result<(), String> {
        if let Some(reason) = self.held_back.lock().clone() {
            return Err(reason);
        }
        let Seen { raft_leader, raft_term, is_alone, quorum_heard, behind } = self.look()?;
        let Some(raft_leader) = raft_leader else { return Err("no raft leader is known".into()) };
        if raft_leader == self.local.node_id() {
            if !is_alone && !quorum_heard {
                return Err("this raft leader cannot reach its quorum".into());
            }
            if self.replica.stamp(raft_term).is_none() {
                return Err("this raft leader has not applied an entry of its reign yet".into());
            }
        } else if !self.raft_leader_heard.is_within(Self::SILENCE_MAX) {
            return Err(format!("the raft leader has not been heard for {} s", Self::SILENCE_MAX.as_secs()));
        }
        if behind > Self::LAG_MAX { Err(format!("catching up: {behind} entries behind")) } else { Ok(()) }
    }

    /// Copies the metrics that readiness depends on. The raft core waits while somebody reads its metrics, so the
    /// reader must not wait for anything at the same time, such as the replica's lock.
    fn look(&self) -> Result<Seen, String> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        if let Err(error) = &metrics.running_state {
            return Err(format!("raft has stopped: {error}"));
        }
        let committed = metrics.cluster_committed.map_or(0, |log_id| log_id.index);
        let applied = metrics.last_applied.map_or(0, |log_id| log_id.index);
        Ok(Seen {
            raft_leader: metrics.current_leader,
            raft_term: metrics.current_term,
            is_alone: metrics.membership_config.membership().voter_ids().count() == 1,
            quorum_heard: metrics.last_quorum_acked.is_some_and(|at| at.elapsed() <= Self::SILENCE_MAX),
            behind: committed.saturating_sub(applied),
        })
    }
}

/// The metrics of the raft core that readiness depends on, all of one moment.
struct Seen {
    raft_leader: Option<NodeId>,
    raft_term: u64,
    is_alone: bool,
    quorum_heard: bool,
    /// The number of committed entries that are not applied yet.
    behind: u64,
}
