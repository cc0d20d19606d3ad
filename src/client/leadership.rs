//! The right to lead, in the hands of the program that won it.
//!
//! What is known of the lease is in [`held_lease`](super::held_lease); who renews it is
//! [`lease_keeper`](super::lease_keeper).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::error::ClientError;
use super::held_lease::{Granted, HeldLease, LeadershipState, LossReason};
use super::holder_clock::Deadline;
use super::lease_keeper::{LeaseKeeper, ResignReply};
use super::room_calls::RoomCalls;
use crate::domain::{ContenderId, FencingToken, RoomId};
use crate::wire::LeaderToken;

/// The right to act for a room, for as long as it lasts.
///
/// Dropping it stops the renewals, and resigns without waiting for the outcome. It must be dropped or resigned
/// only when the work that it allows has ended.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.rs"));
/// # async fn work_a_little(term: quorate::domain::FencingToken) {}
/// # fn main() { with_a_node(async |node| {
/// # let client = quorate::client::Client::builder().urls(node).build()?;
/// # let mut steps = 3;
/// let leadership = client.election("nightly-report")?.campaign("worker-a")?.wait().await?;
/// // For work in steps: ask before each. It reads a clock, and sends nothing.
/// while leadership.is_held() {
///     work_a_little(leadership.term()).await;
/// #   steps -= 1;
/// #   if steps == 0 { break; }
/// }
/// # assert_eq!(steps, 0);
/// leadership.resign().await?;
/// # assert!(client.election("nightly-report")?.status().await?.leader.is_none());
/// # Ok(()) }) }
/// ```
#[must_use = "dropping a leadership resigns"]
pub struct Leadership {
    lease: Arc<HeldLease>,
    stop: Option<oneshot::Sender<ResignReply>>,
}

impl Leadership {
    /// Starts to keep a lease that was granted just now.
    pub(super) fn start(calls: RoomCalls, granted: Granted) -> Leadership {
        let lease = Arc::new(HeldLease::new(calls.room.clone(), calls.caller.clock.clone(), granted));
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(LeaseKeeper::new(calls, lease.clone()).keep(stopped));
        Leadership { lease, stop: Some(stop) }
    }

    /// The number to send along with every write. It is higher than every earlier leader's.
    pub fn term(&self) -> FencingToken {
        self.lease.fencing_token
    }

    /// Which room.
    pub fn room(&self) -> &RoomId {
        &self.lease.room
    }

    /// The name that it was won under.
    pub fn candidate(&self) -> &ContenderId {
        &self.lease.contender
    }

    /// The secret that proves who leads. Whoever has it can renew and resign.
    pub fn leader_token(&self) -> &LeaderToken {
        &self.lease.lease_secret
    }

    /// How long acting is still allowed: zero once the leadership is lost or its safety deadline has passed. It
    /// reads clocks, and waits for nothing.
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// Whether acting is allowed now. Ask right before each step that can't be taken back.
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// When acting is no longer allowed, by the last renewal.
    pub fn authority(&self) -> Deadline {
        self.lease.times().authority
    }

    /// The state, to be watched.
    pub fn state(&self) -> watch::Receiver<LeadershipState> {
        self.lease.state.subscribe()
    }

    /// Cancelled when the leadership is lost or given up, or its safety deadline has passed.
    pub fn token(&self) -> CancellationToken {
        self.lease.cancellation.clone()
    }

    /// A view that can be cloned and kept after the leadership has ended.
    pub fn observer(&self) -> Observer {
        Observer { lease: self.lease.clone() }
    }

    /// Waits until it is over, and says why.
    pub async fn lost(&self) -> LossReason {
        self.lease.lost().await
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
        match &*self.lease.state.borrow() {
            LeadershipState::Lost(reason) if *reason != LossReason::Resigned => Ok(()),
            _ => Err(ClientError::OutcomeUnknown("the runtime stopped before the room was given up".into())),
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        // The keeper sees the sender go, and resigns.
        self.lease.end(LossReason::Resigned);
    }
}

/// Looks at a [`Leadership`] from elsewhere, without keeping it.
#[derive(Clone)]
pub struct Observer {
    lease: Arc<HeldLease>,
}

impl Observer {
    /// As [`Leadership::remaining`].
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// As [`Leadership::term`].
    pub fn term(&self) -> FencingToken {
        self.lease.fencing_token
    }

    /// As [`Leadership::candidate`].
    pub fn candidate(&self) -> &ContenderId {
        &self.lease.contender
    }
}
