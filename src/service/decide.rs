//! From a question to its answer: decided here by the raft leader, or sent to it, and tried again while the
//! request has time.

use std::time::Duration;

use tokio::time::Instant;

use super::{AskFailure, Decision, RoomService, ServiceError};
use crate::consensus::{ProposeError, RaftLeader};
use crate::domain::{Ask, Judgement, Outcome};

/// The first pause before another try. A new raft leader refuses writes for a few milliseconds.
const RETRY_FIRST: Duration = Duration::from_millis(5);
/// The longest such pause.
const RETRY_MAX: Duration = Duration::from_millis(100);
/// What a client is told to wait when there is no raft leader: about one raft election.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An answer, and how it came about.
pub struct Submitted {
    /// The answer.
    pub outcome: Outcome,
    /// Name of the node that decided.
    pub decided_by: String,
    /// Whether an earlier try of the same request may have been committed as well.
    pub maybe_done_before: bool,
}

impl RoomService {
    /// Gets a question decided, wherever the raft leader is, within `time`.
    ///
    /// A try whose outcome is unknown is repeated. That is safe: a grant is recognised by its nonce or key, a
    /// renewal changes nothing the second time, and a resignation that finds its lease gone says so.
    pub async fn submit(&self, ask: Ask, time: Duration) -> Result<Submitted, ServiceError> {
        let deadline = Instant::now() + time;
        let mut maybe_done_before = false;
        let mut pause = RETRY_FIRST;
        let mut reason = "no raft leader is known";
        loop {
            let (decision, decided_by) = match self.consensus.raft_leader() {
                None => (Err(AskFailure::NotDecided), None),
                Some(RaftLeader::Me) => {
                    reason = "this raft leader cannot reach its quorum";
                    (self.decide(&ask, deadline).await, Some(self.name().to_owned()))
                }
                Some(RaftLeader::Other(id, node)) => {
                    reason = "the raft leader did not answer";
                    let name = node.name.clone();
                    (self.forwarder.forward(id, node, ask.clone(), deadline).await, Some(name))
                }
            };
            match decision {
                Ok(outcome) => {
                    let decided_by = decided_by.unwrap_or_default();
                    return Ok(Submitted { outcome, decided_by, maybe_done_before });
                }
                // A question changes nothing, however often it is asked.
                Err(AskFailure::OutcomeUnknown) => maybe_done_before |= !matches!(ask, Ask::View(_)),
                Err(AskFailure::NotDecided) => {}
            }
            if Instant::now() + pause >= deadline {
                return Err(if maybe_done_before {
                    ServiceError::OutcomeUnknown
                } else {
                    ServiceError::Unavailable { reason: reason.into(), retry_after: RETRY_AFTER }
                });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// Decides a question on this node, if it is raft leader.
    ///
    /// It judges first: what would change nothing is answered after a read barrier, without a log entry. What
    /// may change something goes through the log.
    pub async fn decide(&self, ask: &Ask, deadline: Instant) -> Decision {
        let judge = || self.consensus.judge(ask, self.limits()).ok_or(AskFailure::NotDecided);
        let proposal = match judge()? {
            Judgement::Changes(proposal) => proposal,
            Judgement::Answer(_) => {
                self.consensus.read_barrier(deadline).await.map_err(|_| AskFailure::NotDecided)?;
                // The state that was judged may have been out of date; after the barrier it is not.
                match judge()? {
                    Judgement::Changes(proposal) => proposal,
                    Judgement::Answer(outcome) => return Ok(outcome),
                }
            }
        };
        let live_leases_max = self.settings.live_leases_max;
        let proposed = self.consensus.propose(|stamp| proposal.stamped(stamp, live_leases_max), deadline).await;
        proposed.map_err(|error| match error {
            ProposeError::NotProposed => AskFailure::NotDecided,
            ProposeError::OutcomeUnknown => AskFailure::OutcomeUnknown,
        })
    }
}
