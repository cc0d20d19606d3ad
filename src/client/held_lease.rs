//! A lease that was won, as it is known here: until when it is held, and whether it is over.
//!
//! Whoever asks reads the clock and the deadline, and waits for nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::caller::Answer;
use super::holder_clock::{Deadline, HolderClock, HolderInstant};
use crate::domain::{ContenderId, FencingToken, RoomId};
use crate::wire::{LeaderToken, Won};

/// How much of a lease is for acting, in tenths. In the rest, what acted must come to its end.
const AUTHORITY_TENTHS: u32 = 8;

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
    /// All nodes refuse to renew.
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
    /// [`Leadership::is_held`](super::Leadership::is_held) before acting.
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

/// A lease that nobody renews: its owner has to.
#[derive(Debug)]
#[must_use = "the lease blocks the room until it ends"]
pub struct Granted {
    /// What the node answered.
    pub won: Won,
    /// Which node that was.
    pub server: String,
    /// When the lease ends, on this machine's clocks.
    pub valid_until: Deadline,
}

impl Granted {
    /// Whether a tenth of what was granted has passed.
    pub(super) fn is_stale(&self, now: HolderInstant) -> bool {
        let valid_for = Duration::from_millis(self.won.valid_for_ms);
        self.valid_until.remaining(now) < valid_for * 9 / 10
    }
}

/// What a leadership, its observers and its keeper share.
pub(super) struct HeldLease {
    pub room: RoomId,
    pub contender: ContenderId,
    pub fencing_token: FencingToken,
    pub lease_secret: LeaderToken,
    pub clock: Arc<dyn HolderClock>,
    times: Mutex<Times>,
    pub state: watch::Sender<LeadershipState>,
    pub cancellation: CancellationToken,
}

/// Ends of the lease, by the last answer.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// When to act no longer.
    pub authority: Deadline,
    /// When somebody else may lead.
    pub lease: Deadline,
}

impl Times {
    fn new(lease: Deadline) -> Times {
        Times { authority: lease.scaled(|valid_for| valid_for * AUTHORITY_TENTHS / 10), lease }
    }
}

impl HeldLease {
    /// A lease that was granted just now.
    pub fn new(room: RoomId, clock: Arc<dyn HolderClock>, granted: Granted) -> HeldLease {
        let Granted { won, server, valid_until } = granted;
        let standing = Standing { renewals: 0, server, expires_at: won.leader.expires_at };
        HeldLease {
            room,
            contender: won.leader.candidate_id,
            fencing_token: won.leader.term,
            lease_secret: won.leader_token,
            clock,
            times: Mutex::new(Times::new(valid_until)),
            state: watch::Sender::new(LeadershipState::Held(standing)),
            cancellation: CancellationToken::new(),
        }
    }

    /// When it ends, by the last answer.
    pub fn times(&self) -> Times {
        *self.lock_times()
    }

    fn lock_times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long acting is still allowed.
    pub fn remaining(&self) -> Duration {
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
    pub fn end(&self, reason: LossReason) {
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

    /// Waits for the end.
    pub async fn lost(&self) -> LossReason {
        let mut state = self.state.subscribe();
        loop {
            if let LeadershipState::Lost(reason) = &*state.borrow_and_update() {
                return reason.clone();
            }
            // `self` has the sender, so it can't have gone.
            let _ = state.changed().await;
        }
    }

    /// Takes what a renewal gave, and returns it.
    pub fn renewed(&self, answer: Answer<Won>) -> Deadline {
        let valid_for = Duration::from_millis(answer.body.valid_for_ms);
        let new = Times::new(Deadline::new(answer.sent_at, valid_for));
        let now = self.clock.now();
        {
            let mut times = self.lock_times();
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
}
