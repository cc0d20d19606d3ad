//! Keeps a lease: renews it well before its end, and gives it up when its owner says so or has gone.
//!
//! The keeper is a task of its own, and the only one who talks to the nodes about the lease, one request at a time.

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

/// How often the clocks are read. Timers stand still while a machine sleeps; so none is set for longer than this.
const CLOCK_INTERVAL: Duration = Duration::from_millis(50);

/// How long a resignation that nobody waits for is tried.
const DROPPED_RESIGN_MAX: Duration = Duration::from_secs(2);

/// Between two calls for one renewal, each of which has asked every node already.
const RENEWAL_PAUSE: Duration = Duration::from_millis(200);

/// Where the keeper says how a resignation went.
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
        let told = loop {
            tokio::select! {
                biased;
                () = self.authority_ended() => break None,
                told = &mut stopped => break told.ok(),
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
        if let Some(done) = told {
            // If nobody waits for the outcome any more, nobody needs it.
            let _ = done.send(self.give_up(self.calls.caller.request_deadline).await);
        } else if resigned && let Err(error) = self.give_up(DROPPED_RESIGN_MAX).await {
            tracing::debug!(room = %self.calls.room, %error, "not resigned; the lease ends by itself");
        }
        // After a loss nothing is sent: what the lease allowed may need the rest of it to come to its end.
    }

    /// Returns when the safety deadline has passed, or the leadership is over.
    async fn authority_ended(&self) {
        loop {
            let remaining = self.lease.remaining();
            if remaining.is_zero() {
                return;
            }
            tokio::time::sleep(remaining.min(CLOCK_INTERVAL)).await;
        }
    }

    /// Sleeps until a third of what was granted `last` has passed, a little more or less.
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

    /// Asks all nodes in turn until one has renewed, or one proves that there is nothing to renew.
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
                    // One node may have other settings than the rest, as while they are changed on one after the other.
                    rejections += 1;
                    if rejections == caller.urls.len() {
                        return Err(LossReason::Rejected { code: rejection.code });
                    }
                    caller.leave(caller.current_server());
                }
                Err(error) => tracing::debug!(%room, %error, "not renewed yet"),
            }
            tokio::time::sleep(RENEWAL_PAUSE).await;
        }
    }

    /// Tells the nodes. Nobody else may lead before the lease ends, so there is no point in trying longer.
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
