//! The right to lead, for the program that won it.
//!
//! The lease itself is in [`held_lease`](super::held_lease). A task in [`lease_keeper`](super::lease_keeper) renews it.

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

/// The right to act as the leader of a room, while it lasts. The lease is renewed in the background.
///
/// Drop or resign it only when the work that it allows has ended, because another candidate may lead at once. Dropping
/// stops the renewals, and resigns in the background for at most 2 seconds. If that fails, the lease ends by itself.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.rs"));
/// # async fn work_a_little(term: quorate::domain::FencingToken) {}
/// # fn main() { with_a_node(async |node| {
/// # let client = quorate::client::Client::builder().urls(node).build()?;
/// # let mut steps = 3;
/// let leadership = client.election("nightly-report")?.campaign("worker-a")?.wait().await?;
/// // For work in steps: check before each step. This reads a clock, and sends nothing.
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
#[must_use = "dropping a leadership gives the room up"]
pub struct Leadership {
    lease: Arc<HeldLease>,
    stop: Option<oneshot::Sender<ResignReply>>,
}

impl Leadership {
    /// Starts the task that renews the lease of a campaign that has just been won.
    pub(super) fn start(calls: RoomCalls, granted: Granted) -> Leadership {
        let lease = Arc::new(HeldLease::new(calls.room.clone(), calls.caller.clock.clone(), granted));
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(LeaseKeeper::new(calls, lease.clone()).keep(stopped));
        Leadership { lease, stop: Some(stop) }
    }

    /// The number to send with every write. It is higher than that of every earlier leader.
    pub fn term(&self) -> FencingToken {
        self.lease.fencing_token
    }

    /// The name of the room.
    pub fn room(&self) -> &RoomId {
        &self.lease.room
    }

    /// The candidate that won: the name given to [`Election::campaign`](super::Election::campaign).
    pub fn candidate(&self) -> &ContenderId {
        &self.lease.contender
    }

    /// The secret that proves who leads. Anybody who has it can renew and resign, so keep it secret.
    pub fn leader_token(&self) -> &LeaderToken {
        &self.lease.lease_secret
    }

    /// How long this program may still act without another renewal. Zero once the leadership is over.
    ///
    /// It reads clocks, and does not wait.
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// Whether this program may act now. Check right before each step that cannot be undone.
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// When authority ends, if no more renewals succeed.
    pub fn authority(&self) -> Deadline {
        self.lease.times().authority
    }

    /// The state, and its changes: each renewal, and the loss.
    pub fn state(&self) -> watch::Receiver<LeadershipState> {
        self.lease.state.subscribe()
    }

    /// A token that is cancelled when the leadership is over: lost or given up.
    pub fn token(&self) -> CancellationToken {
        self.lease.cancellation.clone()
    }

    /// A read-only handle for other tasks. It can be cloned, and outlives the leadership.
    pub fn observer(&self) -> Observer {
        Observer { lease: self.lease.clone() }
    }

    /// Waits until the leadership is over, and returns the reason.
    pub async fn lost(&self) -> LossReason {
        self.lease.lost().await
    }

    /// Runs `work` while the leadership lasts, and resigns when the work is done. If resigning fails, the lease ends by
    /// itself.
    ///
    /// # Errors
    /// The reason of the loss, if the leadership is lost before the work is done. The work is then dropped where it
    /// waits. A result that came too late is dropped, too.
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
            tracing::debug!(%error, "resigning failed; the room becomes vacant when the lease ends");
        }
        Ok(output)
    }

    /// Gives the room up, and waits until a node has confirmed it. Authority ends at once.
    ///
    /// If the leadership is over already, this succeeds.
    ///
    /// # Errors
    /// See [`ClientError`]. The room may be vacant; if not, it becomes vacant when the lease ends.
    pub async fn resign(mut self) -> Result<(), ClientError> {
        let (done, outcome) = oneshot::channel();
        let sent = self.stop.take().map(|stop| stop.send(done));
        match sent {
            Some(Ok(())) => outcome.await.unwrap_or_else(|_| self.not_given_up()),
            // The keeper has ended, so there is nothing left to give up.
            _ => Ok(()),
        }
    }

    /// The result if the keeper ended without one.
    fn not_given_up(&self) -> Result<(), ClientError> {
        match &*self.lease.state.borrow() {
            LeadershipState::Lost(reason) if *reason != LossReason::Resigned => Ok(()),
            _ => Err(ClientError::OutcomeUnknown("the tokio runtime stopped before a node confirmed it".into())),
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        // Dropping `stop` makes the keeper resign.
        self.lease.end(LossReason::Resigned);
    }
}

/// A read-only handle on a [`Leadership`], for other tasks. It does not keep the leadership alive.
#[derive(Clone)]
pub struct Observer {
    lease: Arc<HeldLease>,
}

impl Observer {
    /// How long the leader may still act, as [`Leadership::remaining`]. Zero once the leadership is over.
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// The number to send with every write, as [`Leadership::term`].
    pub fn term(&self) -> FencingToken {
        self.lease.fencing_token
    }

    /// The candidate that won, as [`Leadership::candidate`].
    pub fn candidate(&self) -> &ContenderId {
        &self.lease.contender
    }
}
