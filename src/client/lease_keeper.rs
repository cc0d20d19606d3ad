//! Keeps a lease: renews it well before its end, and gives it up when its owner says so or has gone.
//!
//! The keeper is a task of its own, and the only one who talks to the nodes about the lease, one request at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::backoff::random_share;
use super::caller::{Answer, Call};
use super::election::Election;
use super::error::ClientError;
use super::held_lease::{HeldLease, LeadershipState, LossReason};
use super::holder_clock::Deadline;
use crate::wire::{ErrorCode, RenewRequest, Won};

/// How often the clocks are read. Timers stand still while a machine sleeps; so none is set for longer than this.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a resignation that nobody waits for is tried.
const FAREWELL: Duration = Duration::from_secs(2);

/// Between two calls for one renewal, each of which has asked every node already.
const RENEWAL_PAUSE: Duration = Duration::from_millis(200);

/// Where the keeper says how a resignation went.
pub(super) type Farewell = oneshot::Sender<Result<(), ClientError>>;

/// Keeps the lease until it is lost, or until its owner gives it up or drops it.
pub(super) async fn keep(lease: Arc<HeldLease>, mut told_to_stop: oneshot::Receiver<Farewell>) {
    let mut last = lease.times().lease;
    let told = loop {
        tokio::select! {
            biased;
            () = lease.authority_ended() => break None,
            told = &mut told_to_stop => break told.ok(),
            renewal = async {
                lease.renewal_is_due(last).await;
                lease.renew().await
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
        let _ = done.send(lease.give_up(lease.election.client.request_deadline).await);
    } else if resigned && let Err(error) = lease.give_up(FAREWELL).await {
        tracing::debug!(room = %lease.election.room, %error, "not resigned; the lease ends by itself");
    }
    // After a loss nothing is sent: what the lease allowed may need the rest of it to come to its end.
}

impl HeldLease {
    /// Returns when the safety deadline has passed, or the leadership is over.
    async fn authority_ended(&self) {
        loop {
            let remaining = self.remaining();
            if remaining.is_zero() {
                return;
            }
            tokio::time::sleep(remaining.min(LOOK_EVERY)).await;
        }
    }

    /// Sleeps until a third of what was granted `last` has passed, a little more or less.
    async fn renewal_is_due(&self, last: Deadline) {
        let due = last.at_share(|valid_for| random_share().jitter(valid_for / 3));
        loop {
            let remaining = due.remaining(self.clock.now());
            if remaining.is_zero() {
                return;
            }
            tokio::time::sleep(remaining.min(LOOK_EVERY)).await;
        }
    }

    /// Asks all nodes in turn until one has renewed, or one proves that there is nothing to renew.
    async fn renew(&self) -> Result<Answer<Won>, LossReason> {
        let Election { client, room } = &self.election;
        let request = RenewRequest { leader_token: self.lease_secret.clone(), ttl_seconds: None, metadata: None };
        let call = Call::post(format!("/elections/{room}/renew"), &request);
        let mut refusals = 0;
        loop {
            let deadline = self.times().authority;
            match client.caller.call::<Won>(&call, deadline).await {
                Ok(answer) if answer.body.leader.term == self.fencing_token && answer.body.valid_for_ms > 0 => {
                    return Ok(answer);
                }
                Ok(_) => return Err(LossReason::NotCurrent),
                Err(ClientError::Refused(refusal)) if refusal.is(ErrorCode::LeaseNotCurrent) => {
                    return Err(LossReason::NotCurrent);
                }
                Err(ClientError::Refused(refusal)) if !refusal.may_pass() => {
                    // One node may have other settings than the rest, as while they are changed on one after the other.
                    refusals += 1;
                    if refusals == client.caller.urls.len() {
                        return Err(LossReason::Rejected { code: refusal.code });
                    }
                    client.caller.leave(client.caller.current_server());
                }
                Err(error) => tracing::debug!(%room, %error, "not renewed yet"),
            }
            tokio::time::sleep(RENEWAL_PAUSE).await;
        }
    }

    /// Tells the nodes. Nobody else may lead before the lease ends, so there is no point in trying longer.
    async fn give_up(&self, longest: Duration) -> Result<(), ClientError> {
        let now = self.clock.now();
        let remaining = self.times().lease.remaining(now).min(longest);
        if remaining.is_zero() {
            return Ok(());
        }
        self.election.resign_by(self.lease_secret.clone(), Deadline::new(now, remaining)).await.map(|_| ())
    }
}
