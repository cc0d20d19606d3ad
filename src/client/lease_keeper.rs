//! Keeps a lease: renews it well before its end, and resigns when the owner gives it up or drops it.
//!
//! The keeper is a task of its own. No other task sends requests about the lease, and the keeper sends one at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::backoff::Fraction;
use super::caller::Answer;
use super::error::ClientError;
use super::held_lease::{HeldLease, LeadershipState, LossReason};
use super::holder_clock::Deadline;
use super::room_calls::RoomCalls;
use crate::wire::{ErrorCode, Won};

/// How often the clocks are read. Timers stop while the machine sleeps, so none is set for longer than this.
const CLOCK_INTERVAL: Duration = Duration::from_millis(50);

/// How long to try to resign after the owner dropped the leadership. Nobody waits for the result.
const DROPPED_RESIGN_MAX: Duration = Duration::from_secs(2);

/// The pause between two tries of one renewal. Most tries have asked every node already.
const RENEWAL_PAUSE: Duration = Duration::from_millis(200);

/// The channel for the result of a resignation.
pub(super) type ResignReply = oneshot::Sender<Result<(), ClientError>>;

/// The task that renews one lease.
pub(super) struct LeaseKeeper {
    calls: RoomCalls,
    lease: Arc<HeldLease>,
}

impl LeaseKeeper {
    pub fn new(calls: RoomCalls, lease: Arc<HeldLease>) -> LeaseKeeper {
        LeaseKeeper { calls, lease }
    }

    /// Keeps the lease until it is lost, or until its owner gives it up or drops it.
    pub async fn keep(self, mut stopped: oneshot::Receiver<ResignReply>) {
        let lease = &self.lease;
        let mut last = lease.times().lease;
        let reply = loop {
            tokio::select! {
                biased;
                () = self.authority_ended() => break None,
                reply = &mut stopped => break reply.ok(),
                renewal = async {
                    self.renewal_is_due(last).await;
                    self.renew().await
                } => match renewal {
                    Ok(answer) => last = lease.renewed(answer),
                    Err(reason) => {
                        lease.end(reason);
                        break None;
                    }
                }
            }
        };
        lease.end(LossReason::Resigned);
        let resigned = *lease.state.borrow() == LeadershipState::Lost(LossReason::Resigned);
        if let Some(reply) = reply {
            // The owner may have stopped waiting for the result. Then it is not needed.
            let _ = reply.send(self.give_up(self.calls.caller.request_deadline).await);
        } else if resigned && let Err(error) = self.give_up(DROPPED_RESIGN_MAX).await {
            tracing::debug!(
                room = %self.calls.room, %error, "resigning failed; the room becomes vacant when the lease ends"
            );
        }
        // After a loss nothing is sent. The work may need the rest of the lease to stop.
    }

    /// Waits until authority has ended, or the leadership is over.
    async fn authority_ended(&self) {
        loop {
            let remaining = self.lease.remaining();
            if remaining.is_zero() {
                return;
            }
            tokio::time::sleep(remaining.min(CLOCK_INTERVAL)).await;
        }
    }

    /// Waits until about a third of the lease, as granted by the last answer, has passed.
    async fn renewal_is_due(&self, last: Deadline) {
        let due = last.scaled(|valid_for| Fraction::random().jitter(valid_for / 3));
        loop {
            let remaining = due.remaining(self.lease.clock.now());
            if remaining.is_zero() {
                return;
            }
            tokio::time::sleep(remaining.min(CLOCK_INTERVAL)).await;
        }
    }

    /// Tries to renew until a node has done so, a node says that the lease is not current, or every node rejects it.
    /// [`LeaseKeeper::keep`] stops this when authority ends.
    async fn renew(&self) -> Result<Answer<Won>, LossReason> {
        let RoomCalls { caller, room } = &self.calls;
        let mut rejections = 0;
        loop {
            let deadline = self.lease.times().authority;
            match self.calls.renew(&self.lease.lease_secret, deadline).await {
                Ok(answer) if answer.body.leader.term == self.lease.fencing_token && answer.body.valid_for_ms > 0 => {
                    return Ok(answer);
                }
                Ok(_) => return Err(LossReason::NotCurrent),
                Err(ClientError::Rejected(rejection)) if rejection.is(ErrorCode::LeaseNotCurrent) => {
                    return Err(LossReason::NotCurrent);
                }
                Err(ClientError::Rejected(rejection)) if !rejection.may_pass() => {
                    // While an operator changes a setting, one node after the other, a single node may reject this.
                    rejections += 1;
                    if rejections == caller.urls.len() {
                        return Err(LossReason::Rejected { code: rejection.code });
                    }
                    caller.leave(caller.current_server());
                }
                Err(error) => tracing::debug!(%room, %error, "the lease is not renewed yet; another try follows"),
            }
            tokio::time::sleep(RENEWAL_PAUSE).await;
        }
    }

    /// Resigns, for at most `longest`. When the lease ends, the room becomes vacant anyway, so the tries end then.
    async fn give_up(&self, longest: Duration) -> Result<(), ClientError> {
        let now = self.lease.clock.now();
        let remaining = self.lease.times().lease.remaining(now).min(longest);
        if remaining.is_zero() {
            return Ok(());
        }
        let deadline = Deadline::new(now, remaining);
        self.calls.resign(self.lease.lease_secret.clone(), deadline).await.map(|_| ())
    }
}
