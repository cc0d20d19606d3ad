//! A lease that is kept: renewed well before its end by a task of its own, and given up in time.
//!
//! The keeper is the only one who talks to the nodes about the lease, one request at a time. Whoever asks whether
//! the lease is held reads the clock and the deadline, and never waits for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::campaign::Granted;
use super::error::{ClientError, Refusal};
use super::holder_clock::Deadline;
use super::retry::{Answer, Call, random_share};
use super::{Election, HolderClock};
use crate::domain::{ContenderId, FencingToken, RoomId};
use crate::wire::{ErrorCode, LeaderToken, RenewRequest, Won};

/// How much of a lease is for acting, in tenths. In the rest, what acted must come to its end.
const AUTHORITY_TENTHS: u32 = 8;

/// How often the clocks are read. Timers stand still while a machine sleeps; so none is set for longer than this.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a resignation that nobody waits for is tried.
const FAREWELL: Duration = Duration::from_secs(2);

/// Between two calls for one renewal, each of which has asked every node already.
const RENEWAL_PAUSE: Duration = Duration::from_millis(200);

/// Why a leadership is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// A node has proved that the lease is not current: it has expired, or was ended by its token elsewhere.
    #[error("the lease is no longer current")]
    NotCurrent,
    /// No renewal got through before authority ended. Whether the lease lives on for a moment, nobody here knows.
    #[error("authority ended before a renewal got through")]
    Uncertain,
    /// The nodes refuse to renew.
    #[error("renewal refused: {code}")]
    Rejected {
        /// The contract's code.
        code: String,
    },
    /// It was given up here.
    #[error("resigned")]
    Resigned,
}

/// How a leadership stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadershipState {
    /// The lease is held, as of the last renewal. The deadline may have passed since: ask
    /// [`Leadership::is_held`] before acting.
    Held(Standing),
    /// It is over, for good.
    Lost(LossReason),
}

/// What the last renewal said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// How many renewals there were.
    pub renewals: u64,
    /// Which node answered.
    pub server: String,
    /// When the lease ends, by the nodes' calendar, for people.
    pub expires_at: String,
}

/// The right to act for a room, for as long as it lasts.
///
/// Dropping it stops the renewals, and resigns without waiting for the outcome. It must be dropped or resigned
/// only when the work that it allows has ended.
#[must_use = "dropping a leadership resigns"]
pub struct Leadership {
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<Farewell>>,
}

/// Where the keeper says how a resignation went.
type Farewell = oneshot::Sender<Result<(), ClientError>>;

struct Shared {
    election: Election,
    contender: ContenderId,
    fencing_token: FencingToken,
    lease_secret: LeaderToken,
    clock: Arc<dyn HolderClock>,
    times: Mutex<Times>,
    state: watch::Sender<LeadershipState>,
    cancellation: CancellationToken,
}

/// Ends of the lease, by the last answer.
#[derive(Clone, Copy)]
struct Times {
    /// When to act no longer.
    authority: Deadline,
    /// When somebody else may lead.
    lease: Deadline,
}

impl Times {
    fn new(lease: Deadline) -> Times {
        Times { authority: lease.at_share(|valid_for| valid_for * AUTHORITY_TENTHS / 10), lease }
    }
}

impl Leadership {
    /// Starts to keep a lease that was granted just now.
    pub(super) fn start(election: Election, granted: Granted) -> Leadership {
        let clock = election.client.caller.clock.clone();
        let Granted { won, server, valid_until } = granted;
        let times = Times::new(valid_until);
        let standing = Standing { renewals: 0, server, expires_at: won.leader.expires_at };
        let shared = Arc::new(Shared {
            election,
            contender: won.leader.candidate_id,
            fencing_token: won.leader.term,
            lease_secret: won.leader_token,
            clock,
            times: Mutex::new(times),
            state: watch::Sender::new(LeadershipState::Held(standing)),
            cancellation: CancellationToken::new(),
        });
        let (stop, told_to_stop) = oneshot::channel();
        tokio::spawn(keep(shared.clone(), valid_until, told_to_stop));
        Leadership { shared, stop: Some(stop) }
    }

    /// The number to send along with every write. It is higher than every earlier leader's.
    pub fn term(&self) -> FencingToken {
        self.shared.fencing_token
    }

    /// Which room.
    pub fn room(&self) -> &RoomId {
        &self.shared.election.room
    }

    /// The name that it was won under.
    pub fn candidate(&self) -> &ContenderId {
        &self.shared.contender
    }

    /// The secret that proves who leads. Whoever has it can renew and resign.
    pub fn leader_token(&self) -> &LeaderToken {
        &self.shared.lease_secret
    }

    /// How long acting is still allowed: zero once the leadership is lost or its safety deadline has passed. It
    /// reads clocks, and waits for nothing.
    pub fn remaining(&self) -> Duration {
        self.shared.remaining()
    }

    /// Whether acting is allowed now. Ask right before each step that can't be taken back.
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// When acting is no longer allowed, by the last renewal.
    pub fn authority(&self) -> Deadline {
        self.shared.times().authority
    }

    /// The state, to be watched.
    pub fn state(&self) -> watch::Receiver<LeadershipState> {
        self.shared.state.subscribe()
    }

    /// Cancelled when the leadership is lost or given up, or its safety deadline has passed.
    pub fn token(&self) -> CancellationToken {
        self.shared.cancellation.clone()
    }

    /// A view that can be cloned and kept after the leadership has ended.
    pub fn observer(&self) -> Observer {
        Observer { shared: self.shared.clone() }
    }

    /// Waits until it is over, and says why.
    pub async fn lost(&self) -> LossReason {
        self.shared.lost().await
    }

    /// Runs `work` for as long as the leadership lasts, and resigns once it has ended.
    ///
    /// # Errors
    /// If the leadership is lost before: `work` is then dropped where it waits.
    pub async fn run<T>(self, work: impl Future<Output = T>) -> Result<T, LossReason> {
        let output = tokio::select! {
            biased;
            reason = self.lost() => return Err(reason),
            output = work => output,
        };
        if !self.is_held() {
            return Err(self.lost().await);
        }
        if let Err(error) = self.resign().await {
            tracing::debug!(%error, "not resigned; the lease will end by itself");
        }
        Ok(output)
    }

    /// Gives the room up, and waits until it is vacant. Authority ends at once.
    ///
    /// # Errors
    /// See [`ClientError`]: the room may be vacant, or will be when the lease has ended.
    pub async fn resign(mut self) -> Result<(), ClientError> {
        let (done, outcome) = oneshot::channel();
        let told = self.stop.take().map(|stop| stop.send(done));
        match told {
            Some(Ok(())) => outcome.await.unwrap_or_else(|_| self.not_given_up()),
            // The keeper has ended: there is nothing left to give up.
            _ => Ok(()),
        }
    }

    /// What to say when the keeper has ended without a word.
    fn not_given_up(&self) -> Result<(), ClientError> {
        match &*self.shared.state.borrow() {
            LeadershipState::Lost(reason) if *reason != LossReason::Resigned => Ok(()),
            _ => Err(ClientError::OutcomeUnknown("the runtime stopped before the room was given up".into())),
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        // The keeper sees the sender go, and resigns.
        self.shared.end(LossReason::Resigned);
    }
}

/// Looks at a [`Leadership`] from elsewhere, without keeping it.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
}

impl Observer {
    /// As [`Leadership::remaining`].
    pub fn remaining(&self) -> Duration {
        self.shared.remaining()
    }

    /// As [`Leadership::term`].
    pub fn term(&self) -> FencingToken {
        self.shared.fencing_token
    }

    /// As [`Leadership::candidate`].
    pub fn candidate(&self) -> &ContenderId {
        &self.shared.contender
    }
}

impl Shared {
    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remaining(&self) -> Duration {
        if self.cancellation.is_cancelled() {
            return Duration::ZERO;
        }
        let authority = self.times().authority;
        let remaining = authority.remaining(self.clock.now());
        if remaining.is_zero() {
            // Nothing that is renewed later may bring it back.
            self.end(LossReason::Uncertain);
        }
        remaining
    }

    /// Ends the leadership; the first reason stays.
    fn end(&self, reason: LossReason) {
        // Before the reason: whoever learns that it is over must find nothing that says the contrary.
        self.cancellation.cancel();
        self.state.send_if_modified(|state| {
            let held = matches!(state, LeadershipState::Held(_));
            if held {
                *state = LeadershipState::Lost(reason);
            }
            held
        });
    }

    async fn lost(&self) -> LossReason {
        let mut state = self.state.subscribe();
        loop {
            if let LeadershipState::Lost(reason) = &*state.borrow_and_update() {
                return reason.clone();
            }
            // `self` has the sender, so it can't have gone.
            let _ = state.changed().await;
        }
    }

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
        loop {
            let deadline = self.times().authority;
            match client.caller.call::<Won>(&call, deadline).await {
                Ok(answer) if answer.body.leader.term == self.fencing_token && answer.body.valid_for_ms > 0 => {
                    return Ok(answer);
                }
                Ok(_) => return Err(LossReason::NotCurrent),
                Err(ClientError::Refused(refusal)) => self.judge(&refusal)?,
                Err(error) => tracing::debug!(%room, %error, "not renewed yet"),
            }
            tokio::time::sleep(RENEWAL_PAUSE).await;
        }
    }

    /// What a refusal means for a holder.
    fn judge(&self, refusal: &Refusal) -> Result<(), LossReason> {
        if refusal.is(ErrorCode::LeaseNotCurrent) {
            return Err(LossReason::NotCurrent);
        }
        if refusal.may_pass() {
            return Ok(());
        }
        Err(LossReason::Rejected { code: refusal.code.clone() })
    }

    /// Takes what a renewal gave, and returns it.
    fn renewed(&self, answer: Answer<Won>) -> Deadline {
        let valid_for = Duration::from_millis(answer.body.valid_for_ms);
        let new = Times::new(Deadline::new(answer.sent_at, valid_for));
        let now = self.clock.now();
        {
            let mut times = self.times();
            *times = Times {
                authority: times.authority.later(new.authority, now),
                lease: times.lease.later(new.lease, now),
            };
        }
        self.state.send_if_modified(|state| {
            let LeadershipState::Held(standing) = state else { return false };
            standing.renewals += 1;
            standing.server = answer.server;
            standing.expires_at = answer.body.leader.expires_at;
            true
        });
        new.lease
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

/// Keeps the lease until it is lost, or until its owner gives it up or drops it.
async fn keep(shared: Arc<Shared>, granted: Deadline, mut told_to_stop: oneshot::Receiver<Farewell>) {
    let mut last = granted;
    let told = loop {
        tokio::select! {
            biased;
            () = shared.authority_ended() => break None,
            told = &mut told_to_stop => break told.ok(),
            renewal = async {
                shared.renewal_is_due(last).await;
                shared.renew().await
            } => match renewal {
                Ok(answer) => last = shared.renewed(answer),
                Err(reason) => {
                    shared.end(reason);
                    break None;
                }
            }
        }
    };
    shared.end(LossReason::Resigned);
    let resigned = *shared.state.borrow() == LeadershipState::Lost(LossReason::Resigned);
    if let Some(done) = told {
        // If nobody waits for the outcome any more, nobody needs it.
        let _ = done.send(shared.give_up(shared.election.client.request_deadline).await);
    } else if resigned && let Err(error) = shared.give_up(FAREWELL).await {
        tracing::debug!(room = %shared.election.room, %error, "not resigned; the lease ends by itself");
    }
    // After a loss nothing is sent: what the lease allowed may need the rest of it to come to its end.
}
