//! The read barrier: one round to the quorum confirms, for all callers that wait, that this node is still raft leader.
//!
//! A caller that arrives while a round is under way waits for the next round. A round that began before a request
//! arrived proves nothing for it (Ongaro, "Consensus: bridging theory and practice", 2014, section 6.4).

use std::time::Duration;

use openraft::{LinearizerOption, ReadPolicy};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::state_machine::StateMachine;
use crate::peer::Undecided;
use crate::raft_types::TypeConfig;

/// How many callers may wait. Each one is a request that was admitted already, so the limits of admission are reached
/// before this one.
const CALLERS_MAX: usize = 65_536;

type Caller = oneshot::Sender<Result<(), Undecided>>;

/// The queue of callers for the next round. Cheap to clone.
#[derive(Clone)]
pub struct ReadBarrier {
    queue: mpsc::Sender<Caller>,
}

impl ReadBarrier {
    /// Starts the task that makes the rounds. It ends with the last clone.
    pub fn start(raft: openraft::Raft<TypeConfig, StateMachine>, round_timeout: Duration) -> Self {
        let (queue, mut callers) = mpsc::channel::<Caller>(CALLERS_MAX);
        tokio::spawn(async move {
            let mut round = Vec::new();
            while callers.recv_many(&mut round, CALLERS_MAX).await > 0 {
                let option = LinearizerOption::from(ReadPolicy::ReadIndex).with_wait_timeout(round_timeout);
                // A raft core that is too busy does not keep its own timeout, so there is a second one around it.
                let confirmed = tokio::time::timeout(round_timeout * 2, raft.ensure_linearizable(option)).await;
                let result = if matches!(confirmed, Ok(Ok(_))) { Ok(()) } else { Err(Undecided::NothingProposed) };
                for caller in round.drain(..) {
                    let _ = caller.send(result);
                }
            }
        });
        Self { queue }
    }

    /// Returns once everything that was committed before the call has been applied here.
    ///
    /// # Errors
    /// `NothingProposed` if this node could not confirm before the deadline that it is raft leader.
    pub async fn pass(&self, deadline: Instant) -> Result<(), Undecided> {
        let (caller, passed) = oneshot::channel();
        let round = async {
            self.queue.send(caller).await.map_err(|_| Undecided::NothingProposed)?;
            passed.await.map_err(|_| Undecided::NothingProposed)?
        };
        tokio::time::timeout_at(deadline, round).await.map_err(|_| Undecided::NothingProposed)?
    }
}
