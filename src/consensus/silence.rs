//! When a raft leader without a quorum stops sending, so that the other nodes can elect one of them.

use std::sync::OnceLock;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::type_config::alias::WatchReceiverOf;
use openraft::{Instant as _, RaftMetrics, ServerState};

use crate::raft_types::TypeConfig;

/// Extends openraft's pause of heartbeats to log entries.
///
/// Openraft's `quorum_loss_probe_interval` holds back heartbeats, but entries are sent again and again until they are
/// replicated. Each arrival tells the receiver that there is a raft leader, so it grants no vote for a while. Entries
/// reach the nodes at different times. So there would always be a node that grants no vote.
pub struct Silence {
    metrics: OnceLock<WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>>,
    raft_election_timeout: Duration,
}

impl Silence {
    /// The length of a silence, and of the time for new attempts after it, in raft election timeouts. In that time the
    /// other nodes forget the raft leader, and one of them asks for votes. Openraft allows no less.
    pub const LASTS_ELECTION_TIMEOUTS: u32 = 2;

    /// A raft leader that always sends, until [`Silence::begin`].
    pub fn new(raft_election_timeout: Duration) -> Self {
        Self { metrics: OnceLock::new(), raft_election_timeout }
    }

    /// From now on, the metrics of this raft core decide when entries are held back.
    pub fn begin(&self, metrics: WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>) {
        // There is one raft core, and it starts once.
        let _ = self.metrics.set(metrics);
    }

    /// Whether no entries may be sent now.
    pub fn is_due(&self) -> bool {
        let Some(metrics) = self.metrics.get() else { return false };
        let metrics = metrics.borrow_watched();
        metrics.state == ServerState::Leader
            && metrics.last_quorum_acked.is_some_and(|at| self.is_due_after(at.elapsed()))
    }

    /// Whether no entries may be sent this long after a quorum answered.
    fn is_due_after(&self, unheard: Duration) -> bool {
        let period = self.raft_election_timeout * Self::LASTS_ELECTION_TIMEOUTS;
        let beyond = unheard.checked_sub(self.raft_election_timeout);
        beyond.is_some_and(|beyond| (beyond.as_nanos() / period.as_nanos()).is_multiple_of(2))
    }
}

#[cfg(test)]
mod tests;
