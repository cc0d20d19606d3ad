//! One round to the quorum confirms for everybody who waits that this node is still raft leader.
//!
//! Who arrives while a round is under way waits for the next one: a round that began before a question was
//! asked proves nothing for it (Ongaro, "Consensus: bridging theory and practice", 2014, section 6.4).

use std::time::Duration;

use openraft::{LinearizerOption, ReadPolicy};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::BarrierFailed;
use super::Raft;

/// How many callers may wait. Each is a request that is already admitted, so this is never the limit that bites.
const WAITING_MAX: usize = 65_536;

type Waiting = oneshot::Sender<Result<(), BarrierFailed>>;

/// See the module.
#[derive(Clone)]
pub struct ReadBarrier {
    queue: mpsc::Sender<Waiting>,
}

impl ReadBarrier {
    /// Starts the task that makes the rounds. It ends with the last clone.
    pub fn start(raft: Raft, round_timeout: Duration) -> Self {
        let (queue, mut waiting) = mpsc::channel::<Waiting>(WAITING_MAX);
        tokio::spawn(async move {
            let mut round = Vec::new();
            while waiting.recv_many(&mut round, WAITING_MAX).await > 0 {
                let option = LinearizerOption::from(ReadPolicy::ReadIndex).with_wait_timeout(round_timeout);
                // The outer limit is for a core that is too busy to keep its own.
                let confirmed = tokio::time::timeout(round_timeout * 2, raft.ensure_linearizable(option)).await;
                let result = if matches!(confirmed, Ok(Ok(_))) { Ok(()) } else { Err(BarrierFailed) };
                for caller in round.drain(..) {
                    let _ = caller.send(result);
                }
            }
        });
        Self { queue }
    }

    /// Returns once everything that was committed before the call has been applied here.
    pub async fn pass(&self, deadline: Instant) -> Result<(), BarrierFailed> {
        let (caller, passed) = oneshot::channel();
        let round = async {
            self.queue.send(caller).await.map_err(|_| BarrierFailed)?;
            passed.await.map_err(|_| BarrierFailed)?
        };
        tokio::time::timeout_at(deadline, round).await.map_err(|_| BarrierFailed)?
    }
}
