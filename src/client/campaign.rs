//! A campaign for a room: the request, with its idempotency key, and how often it is repeated.
//!
//! All repetitions carry the same key. If an answer is lost, the next try finds the lease that the first one won.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::backoff::{Backoff, Fraction};
use super::error::ClientError;
use super::held_lease::Granted;
use super::holder_clock::{Deadline, HolderClock};
use super::leadership::Leadership;
use super::room_calls::RoomCalls;
use crate::domain::{ContenderId, LeaseDuration, Metadata};
use crate::random::{SystemRandom, random_bytes};
use crate::wire::{CampaignRequest, CampaignResponse, Follower};

/// How long a node may wait for the room before it answers a campaign. A node that hangs is noticed shortly after that.
const LONG_POLL: Duration = Duration::from_secs(15);

/// A node without support for `wait_seconds` answers at once. If an answer comes more than this before the end of the
/// wait, the node did not wait. Then the next try comes when the node advises.
const LONG_POLL_SLACK: Duration = Duration::from_secs(1);

/// A campaign of one candidate for one room. Nothing is sent before the campaign is tried or waited for.
#[must_use = "a campaign does nothing until it is tried or waited for"]
pub struct Campaign {
    calls: RoomCalls,
    request: CampaignRequest,
    /// Lets any node find the lease that an earlier try of this campaign won.
    idempotency_key: SecretString,
    on_waiting: Box<dyn Fn(Waiting<'_>) + Send + Sync>,
}

/// The result of a campaign. If another candidate leads, that is not an error.
#[derive(Debug)]
#[must_use]
pub enum Attempt<L> {
    /// This candidate leads.
    Won(L),
    /// Another candidate leads, or another campaign under the same name. The value says who, and when to try again.
    Follower(Follower),
}

/// Why a waiting campaign still waits.
#[derive(Debug, Clone, Copy)]
pub enum Waiting<'a> {
    /// Another candidate leads.
    OtherLeads(&'a Follower),
    /// No node could decide. The campaign is repeated after a pause.
    Trouble(&'a ClientError),
}

/// How long to repeat a campaign.
#[derive(Clone, Copy)]
enum Patience {
    /// Until a node has decided once.
    Once,
    Until(Deadline),
    Endless,
}

impl Patience {
    fn remaining(self, clock: &dyn HolderClock) -> Duration {
        match self {
            Patience::Once => Duration::ZERO,
            Patience::Until(deadline) => deadline.remaining(clock.now()),
            Patience::Endless => Duration::MAX,
        }
    }
}

impl Campaign {
    pub(super) fn new(calls: RoomCalls, contender: ContenderId) -> Campaign {
        let key = Zeroizing::new(random_bytes::<32>(&SystemRandom));
        let request =
            CampaignRequest { candidate_id: contender, ttl_seconds: None, metadata: None, wait_seconds: None };
        Campaign {
            calls,
            request,
            idempotency_key: SecretString::from(URL_SAFE_NO_PAD.encode(*key)),
            on_waiting: Box::new(|_| {}),
        }
    }

    /// How long the lease lasts without a renewal. Default: [`LeaseDuration::DEFAULT`].
    ///
    /// # Errors
    /// [`ClientError::Invalid`] if it is not a number of whole seconds from [`LeaseDuration::SECONDS_MIN`] to
    /// [`LeaseDuration::SECONDS_MAX`].
    pub fn ttl(mut self, ttl: Duration) -> Result<Campaign, ClientError> {
        let whole = Some(ttl.as_secs()).filter(|_| ttl.subsec_nanos() == 0);
        let Some(duration) = whole.and_then(LeaseDuration::from_secs) else {
            let (min, max) = (LeaseDuration::SECONDS_MIN, LeaseDuration::SECONDS_MAX);
            return Err(ClientError::Invalid(format!("the TTL must be {min} to {max} whole seconds, but is {ttl:?}")));
        };
        self.request.ttl_seconds = Some(duration);
        Ok(self)
    }

    /// A note that everybody sees beside the candidate's name, such as an address. Default: none.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] if it is longer than 1,024 characters or 4,096 bytes.
    pub fn metadata(mut self, metadata: &str) -> Result<Campaign, ClientError> {
        self.request.metadata = Some(Metadata::new(metadata)?);
        Ok(self)
    }

    /// Sets a function that is called each time that a waiting campaign learns why it still waits.
    pub fn on_waiting(mut self, callback: impl Fn(Waiting<'_>) + Send + Sync + 'static) -> Campaign {
        self.on_waiting = Box::new(callback);
        self
    }

    /// Leads the room if it is vacant. Does not wait for it.
    ///
    /// If this future is dropped before it completes, the campaign may have won. Then the room is occupied until that
    /// lease ends.
    ///
    /// # Errors
    /// See [`ClientError`]. After [`ClientError::OutcomeUnknown`], too, the room may be occupied until the lease ends.
    pub async fn try_once(self) -> Result<Attempt<Leadership>, ClientError> {
        self.lead(Patience::Once).await
    }

    /// Waits for the room for as long as it takes.
    ///
    /// If this future is dropped before it completes, the campaign may have won, as with [`Campaign::try_once`].
    ///
    /// # Errors
    /// Only errors for which [`ClientError::may_retry`] is false. All others are retried.
    pub async fn wait(self) -> Result<Leadership, ClientError> {
        match self.lead(Patience::Endless).await? {
            Attempt::Won(leadership) => Ok(leadership),
            Attempt::Follower(_) => unreachable!("endless patience ends with a lease or an error"),
        }
    }

    /// Waits for the room for at most `patience`.
    ///
    /// A request that is in flight at that moment is finished first. That takes at most the
    /// [request deadline](super::ClientBuilder::request_deadline). If this future is dropped before it completes, the
    /// campaign may have won, as with [`Campaign::try_once`].
    ///
    /// # Errors
    /// As for [`Campaign::wait`]. Any other error is returned if no node could decide when the time was over.
    pub async fn wait_timeout(self, patience: Duration) -> Result<Attempt<Leadership>, ClientError> {
        let until = Deadline::new(self.calls.caller.clock.now(), patience);
        self.lead(Patience::Until(until)).await
    }

    /// Waits for the room as [`Campaign::wait_timeout`] does, but does not renew the lease.
    ///
    /// This is for programs that hand the token to another process. Zero `patience` tries once.
    ///
    /// # Errors
    /// As for [`Campaign::wait_timeout`].
    pub async fn unattended(self, patience: Duration) -> Result<Attempt<Granted>, ClientError> {
        let until = Deadline::new(self.calls.caller.clock.now(), patience);
        self.campaign(if patience.is_zero() { Patience::Once } else { Patience::Until(until) }).await
    }

    async fn lead(self, patience: Patience) -> Result<Attempt<Leadership>, ClientError> {
        Ok(match self.campaign(patience).await? {
            Attempt::Won(granted) => Attempt::Won(Leadership::start(self.calls, granted)),
            Attempt::Follower(follower) => Attempt::Follower(follower),
        })
    }

    async fn campaign(&self, patience: Patience) -> Result<Attempt<Granted>, ClientError> {
        let clock = &*self.calls.caller.clock;
        let mut backoff = Backoff::new();
        // The first try does not wait, so that the caller learns early who leads.
        let mut long_poll = Duration::ZERO;
        loop {
            let sent_at = clock.now();
            let attempt = self.send(long_poll).await;
            let remaining = patience.remaining(clock);
            match attempt {
                // The lease is counted from the moment before the request was sent. If the node waited for the room,
                // little may be left by that count. The same request, sent again, counts from a later moment.
                Ok(Attempt::Won(granted)) if granted.is_stale(clock.now()) => {
                    long_poll = Duration::ZERO;
                    continue;
                }
                Ok(Attempt::Won(granted)) => return Ok(Attempt::Won(granted)),
                Ok(Attempt::Follower(follower)) => {
                    if remaining.is_zero() {
                        return Ok(Attempt::Follower(follower));
                    }
                    (self.on_waiting)(Waiting::OtherLeads(&follower));
                    let node_waited = clock.now().since(sent_at) + LONG_POLL_SLACK >= long_poll;
                    if !node_waited {
                        tokio::time::sleep(self.time_to_next_try(&follower).min(remaining)).await;
                    }
                    backoff = Backoff::new();
                }
                Err(error) => {
                    if !error.may_retry() || remaining.is_zero() {
                        return Err(error);
                    }
                    (self.on_waiting)(Waiting::Trouble(&error));
                    let pause = backoff.next(Fraction::random()).max(error.retry_after().unwrap_or_default());
                    tokio::time::sleep(pause.min(remaining)).await;
                }
            }
            let whole_seconds = patience.remaining(clock).min(LONG_POLL).as_secs();
            long_poll = Duration::from_secs(whole_seconds);
        }
    }

    /// The time that the node advises, plus up to a tenth of the lease, so that waiting clients don't come all at once.
    fn time_to_next_try(&self, follower: &Follower) -> Duration {
        let lease_duration = self.request.lease_duration().as_duration();
        Duration::from_millis(follower.retry_after_ms.max(100)) + Fraction::random().up_to_a_tenth_of(lease_duration)
    }

    async fn send(&self, long_poll: Duration) -> Result<Attempt<Granted>, ClientError> {
        let answer = self.calls.campaign(&self.request, &self.idempotency_key, long_poll).await?;
        Ok(match answer.body {
            CampaignResponse::Won(won) => {
                let valid_until = Deadline::new(answer.sent_at, Duration::from_millis(won.valid_for_ms));
                Attempt::Won(Granted { won, server: answer.server, valid_until })
            }
            CampaignResponse::Follower(follower) => Attempt::Follower(follower),
        })
    }
}
