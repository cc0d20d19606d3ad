//! A lease that was won, as this process knows it: when it ends, and whether it is lost already.
//!
//! Each check reads the clocks and the deadline, and never waits for a node.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::caller::Answer;
use super::holder_clock::{Deadline, HolderClock, HolderInstant};
use crate::domain::{ContenderId, FencingToken, RoomId};
use crate::wire::{LeaderToken, Won};

/// How much of a lease allows its holder to act, in tenths. The rest is for the work to stop.
const AUTHORITY_TENTHS: u32 = 8;

/// Why a leadership is over. It stays over: to lead again, campaign again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// A node has said that the lease is not current: it has expired, or somebody used its token to resign.
    #[error("the lease is over: it expired or was resigned elsewhere; campaign again to lead again")]
    NotCurrent,
    /// No renewal succeeded before authority ended. The lease may last a little longer, but nobody may act on it.
    #[error("no renewal succeeded in time; check that the nodes can be reached, and campaign again to lead again")]
    Uncertain,
    /// Every node rejects the renewal, for example because it no longer accepts the access token.
    #[error("every node rejects the renewal ({code}); remove the cause, and campaign again to lead again")]
    Rejected {
        /// The stable code of the last rejection, as in [`Rejection::code`](super::Rejection::code).
        code: String,
    },
    /// This program resigned, or dropped the [`Leadership`](super::Leadership).
    #[error("this program gave the leadership up")]
    Resigned,
}

/// Whether a leadership is held or lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadershipState {
    /// The lease was held at the last renewal. Authority may have ended since: call
    /// [`Leadership::is_held`](super::Leadership::is_held) before each action.
    Held(Standing),
    /// The leadership is over, and stays so.
    Lost(LossReason),
}

/// The result of the last renewal or, before the first one, of the campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// How many renewals have succeeded.
    pub renewals: u64,
    /// The URL of the node that answered.
    pub server: String,
    /// When the lease ends, in RFC 3339 by the nodes' calendar. It is for people; use
    /// [`Leadership::remaining`](super::Leadership::remaining) to decide anything.
    pub expires_at: String,
}

/// A lease that no task renews. Hand its token to the program that will renew it, end it with
/// [`Election::resign`](super::Election::resign), or let it expire.
#[derive(Debug)]
#[must_use = "the room stays occupied until the lease ends or its token resigns"]
pub struct Granted {
    /// The answer of the node, with the leader token and the term.
    pub won: Won,
    /// The URL of that node.
    pub server: String,
    /// When the lease ends, on this machine's clocks. Stop acting well before: a [`Leadership`](super::Leadership)
    /// stops after 80 % of the lease.
    pub valid_until: Deadline,
}

impl Granted {
    /// Whether more than a tenth of the granted time has passed.
    pub(super) fn is_stale(&self, now: HolderInstant) -> bool {
        let valid_for = Duration::from_millis(self.won.valid_for_ms);
        self.valid_until.remaining(now) < valid_for * 9 / 10
    }
}

/// The lease that a leadership, its observers and its keeper share.
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

/// When authority and the lease end, by the answers so far.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// The holder must not act after this.
    pub authority: Deadline,
    /// Another contender may lead after this.
    pub lease: Deadline,
}

impl Times {
    fn new(lease: Deadline) -> Times {
        Times { authority: lease.scaled(|valid_for| valid_for * AUTHORITY_TENTHS / 10), lease }
    }
}

impl HeldLease {
    /// A lease that a campaign has just won.
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

    /// The two deadlines at this moment. A later renewal moves them.
    pub fn times(&self) -> Times {
        *self.lock_times()
    }

    fn lock_times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the holder may still act. Once that is zero, the leadership is over.
    pub fn remaining(&self) -> Duration {
        if self.cancellation.is_cancelled() {
            return Duration::ZERO;
        }
        let authority = self.times().authority;
        let remaining = authority.remaining(self.clock.now());
        if remaining.is_zero() {
            // A renewal that comes later must not bring the leadership back.
            self.end(LossReason::Uncertain);
        }
        remaining
    }

    /// Ends the leadership. If it has ended before, its first reason stays.
    pub fn end(&self, reason: LossReason) {
        // This comes before the state. A task that sees the lost state must find the token cancelled.
        self.cancellation.cancel();
        self.state.send_if_modified(|state| {
            let held = matches!(state, LeadershipState::Held(_));
            if held {
                *state = LeadershipState::Lost(reason);
            }
            held
        });
    }

    /// Waits until the leadership is over.
    pub async fn lost(&self) -> LossReason {
        let mut state = self.state.subscribe();
        loop {
            if let LeadershipState::Lost(reason) = &*state.borrow_and_update() {
                return reason.clone();
            }
            // The sender is in `self`, so this cannot fail.
            let _ = state.changed().await;
        }
    }

    /// Records a successful renewal. Returns the end of the lease that this renewal gave.
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
