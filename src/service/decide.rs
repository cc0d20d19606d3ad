//! From an operation to its outcome: decided here if this node is raft leader, forwarded to the raft leader if not, and
//! tried again until the deadline.

use std::time::Duration;

use tokio::time::Instant;

use super::error::ServiceError;
use super::forward::Forwarder;
use super::settings::ServiceSettings;
use crate::consensus::{Consensus, RaftLeader};
use crate::domain::{Change, Command, Judgement, Operation, Outcome, RoomId};
use crate::peer::{Decision, ForwardedOperation, Transport, Undecided};

/// The first pause before a retry. A new raft leader rejects writes for a few milliseconds.
const RETRY_FIRST: Duration = Duration::from_millis(5);
/// The longest such pause.
const RETRY_MAX: Duration = Duration::from_millis(100);
/// The advice to clients when there is no raft leader: about the time of a raft election.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A decision, and how it came about.
#[derive(Debug, Clone)]
pub struct Decided<T> {
    /// The outcome, or the service's answer that follows from it.
    pub answer: T,
    /// Name of the node that decided: the raft leader, or this node for a local read.
    pub decided_by: String,
    /// An earlier try of the same operation may have been committed as well.
    pub maybe_done_before: bool,
}

impl<T> Decided<T> {
    /// The same decision, with the answer that `follow` makes from this one.
    ///
    /// # Errors
    /// The error of `follow`.
    pub fn try_map<U, E>(self, follow: impl FnOnce(T) -> Result<U, E>) -> Result<Decided<U>, E> {
        let Self { answer, decided_by, maybe_done_before } = self;
        Ok(Decided { answer: follow(answer)?, decided_by, maybe_done_before })
    }
}

/// Decides operations, wherever the raft leader is. Cheap to clone.
#[derive(Clone)]
pub struct Decider {
    consensus: Consensus,
    forwarder: Forwarder,
    settings: ServiceSettings,
}

impl Decider {
    /// The decider of one node.
    pub fn new(consensus: Consensus, transport: Transport, settings: ServiceSettings) -> Self {
        let forwarder = Forwarder::new(transport, consensus.clone());
        Self { consensus, forwarder, settings }
    }

    /// Gets an operation decided within `time`, wherever the raft leader is.
    ///
    /// A try with an unknown outcome is repeated. That is safe: a grant is recognised by key and nonce, a second
    /// renewal only moves the deadline further on, and a resignation that finds its lease gone says so.
    ///
    /// # Errors
    /// `Unavailable` if no try can have changed anything, `OutcomeUnknown` otherwise.
    pub async fn submit(&self, operation: Operation, time: Duration) -> Result<Decided<Outcome>, ServiceError> {
        let deadline = Instant::now() + time;
        let mut maybe_done_before = false;
        let mut pause = RETRY_FIRST;
        let mut reason = "no raft leader is known";
        loop {
            let (decision, decided_by) = match self.consensus.raft_leader() {
                None => (Err(Undecided::NothingProposed), None),
                Some(RaftLeader::Me) => {
                    reason = "this raft leader cannot reach its quorum";
                    let name = self.consensus.local().node().name.clone();
                    (self.decide(&operation, deadline).await, Some(name))
                }
                Some(RaftLeader::Other(id, node)) => {
                    reason = "the raft leader did not answer";
                    let name = node.name.clone();
                    (self.forwarder.forward(id, node, operation.clone(), deadline).await, Some(name))
                }
            };
            match decision {
                Ok(outcome) => {
                    let decided_by = decided_by.unwrap_or_default();
                    return Ok(Decided { answer: outcome, decided_by, maybe_done_before });
                }
                // A view changes nothing, however often it is repeated.
                Err(Undecided::OutcomeUnknown) => maybe_done_before |= matches!(operation, Operation::Change(_)),
                Err(Undecided::NothingProposed) => {}
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

    /// Decides the operations of a peer, if this node is raft leader. It never forwards them.
    pub async fn decide_for_peer(&self, operations: Vec<ForwardedOperation>) -> Vec<Decision> {
        let now = Instant::now();
        let decisions = operations.into_iter().map(|ForwardedOperation { operation, remaining_ms }| async move {
            let remaining = Duration::from_millis(remaining_ms).min(self.settings.request_deadline);
            self.decide(&operation, now + remaining).await
        });
        futures::future::join_all(decisions).await
    }

    /// Decides an operation on this node, if it is raft leader.
    async fn decide(&self, operation: &Operation, deadline: Instant) -> Decision {
        match operation {
            Operation::View(room) => self.view(room, deadline).await,
            Operation::Change(change) => self.change(change, deadline).await,
        }
    }

    async fn view(&self, room: &RoomId, deadline: Instant) -> Decision {
        self.consensus.read_barrier(deadline).await?;
        self.consensus.view(room).map(Outcome::Viewed).ok_or(Undecided::NothingProposed)
    }

    /// Judges first. A change without effect is answered after a read barrier, without a log entry. Every other one
    /// goes through the log.
    async fn change(&self, change: &Change, deadline: Instant) -> Decision {
        if let Judgement::Answer(_) = self.judge(change)? {
            // The judged state may have been out of date. After the barrier it is not, so the change is judged again.
            self.consensus.read_barrier(deadline).await?;
            if let Judgement::Answer(outcome) = self.judge(change)? {
                return Ok(outcome);
            }
        }
        let live_leases_max = self.settings.live_leases_max;
        self.consensus.propose(|stamp| Command::stamped(change.clone(), stamp, live_leases_max), deadline).await
    }

    fn judge(&self, change: &Change) -> Result<Judgement, Undecided> {
        self.consensus.judge(change, self.settings.limits()).ok_or(Undecided::NothingProposed)
    }
}
