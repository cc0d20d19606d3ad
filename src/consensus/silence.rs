//! When a raft leader that hears nothing sends nothing either, so that the others can elect one of them.

use std::sync::OnceLock;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::type_config::alias::WatchReceiverOf;
use openraft::{Instant as _, RaftMetrics, ServerState};

use crate::raft_types::TypeConfig;

/// Keeps the time of silence that openraft keeps for its heartbeats, for the entries as well.
///
/// Openraft's `quorum_loss_probe_interval` holds heartbeats back, but entries that wait to be replicated are sent again
/// and again. Each one that arrives tells its receiver that there is a raft leader, and as they arrive at different
/// times, there is always one of the others that grants no vote.
pub struct Silence {
    metrics: OnceLock<WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>>,
    raft_election_timeout: Duration,
}

impl Silence {
    /// How long it lasts, and how long the time to try again after it, in raft election timeouts: until the last word is
    /// forgotten, and one of the others has asked for votes. Openraft allows no less.
    pub const LASTS_ELECTION_TIMEOUTS: u32 = 2;

    /// One that is not kept yet.
    pub fn new(raft_election_timeout: Duration) -> Self {
        Self { metrics: OnceLock::new(), raft_election_timeout }
    }

    /// Is kept from now on, by what this raft core says of itself.
    pub fn begin(&self, metrics: WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>) {
        // There is one raft core, which begins once.
        let _ = self.metrics.set(metrics);
    }

    /// Whether nothing is to be sent now.
    pub fn is_due(&self) -> bool {
        let Some(metrics) = self.metrics.get() else { return false };
        let metrics = metrics.borrow_watched();
        metrics.state == ServerState::Leader
            && metrics.last_quorum_acked.is_some_and(|at| self.is_due_after(at.elapsed()))
    }

    /// Whether it is, so long after a quorum was heard.
    fn is_due_after(&self, unheard: Duration) -> bool {
        let period = self.raft_election_timeout * Self::LASTS_ELECTION_TIMEOUTS;
        let beyond = unheard.checked_sub(self.raft_election_timeout);
        beyond.is_some_and(|beyond| (beyond.as_nanos() / period.as_nanos()).is_multiple_of(2))
    }
}

#[cfg(test)]
mod tests;
