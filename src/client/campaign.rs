//! A campaign: one wish to lead, with one idempotency key, however often and at whichever node it is repeated.

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

/// How long a node is asked to hold a waiting campaign. A node that hangs is noticed after this and a little.
const LONG_POLL: Duration = Duration::from_secs(15);

/// A waiting campaign that was answered this much before its time was not held at all: a node without
/// `wait_seconds` answers at once, and is then asked again when it says so.
const LONG_POLL_SLACK: Duration = Duration::from_secs(1);

/// A campaign that hasn't been sent yet.
#[must_use = "a campaign does nothing until it is tried"]
pub struct Campaign {
    calls: RoomCalls,
    request: CampaignRequest,
    /// Made with the campaign: the lease that a lost answer granted is found again by it, at any node.
    idempotency_key: SecretString,
    on_waiting: Box<dyn Fn(Waiting<'_>) + Send + Sync>,
}

/// How a campaign went. Losing is not an error.
#[derive(Debug)]
#[must_use]
pub enum Attempt<L> {
    /// This candidate leads.
    Won(L),
    /// Somebody else does, or this candidate's name does by another campaign.
    Follower(Follower),
}

/// What a waiting campaign waits for.
#[derive(Debug, Clone, Copy)]
pub enum Waiting<'a> {
    /// Somebody leads.
    OtherLeads(&'a Follower),
    /// No node could decide; it is tried again.
    Trouble(&'a ClientError),
}

/// How long to go on.
#[derive(Clone, Copy)]
enum Patience {
    /// One decision is enough.
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

    /// How long the lease lasts without a renewal: whole seconds, 5 to 300. Without this, 30.
    ///
    /// # Errors
    /// If it is something else.
    pub fn ttl(mut self, ttl: Duration) -> Result<Campaign, ClientError> {
        let whole = Some(ttl.as_secs()).filter(|_| ttl.subsec_nanos() == 0);
        let Some(duration) = whole.and_then(LeaseDuration::from_secs) else {
            let (min, max) = (LeaseDuration::SECONDS_MIN, LeaseDuration::SECONDS_MAX);
            return Err(ClientError::Invalid(format!("the TTL must be {min} to {max} whole seconds, but is {ttl:?}")));
        };
        self.request.ttl_seconds = Some(duration);
        Ok(self)
    }

    /// What everybody shall see beside the name, such as an address.
    ///
    /// # Errors
    /// If it is longer than 1,024 characters or 4,096 bytes.
    pub fn metadata(mut self, metadata: &str) -> Result<Campaign, ClientError> {
        self.request.metadata = Some(Metadata::new(metadata)?);
        Ok(self)
    }

    /// Called whenever a waiting campaign learns what it waits for.
    pub fn on_waiting(mut self, tell: impl Fn(Waiting<'_>) + Send + Sync + 'static) -> Campaign {
        self.on_waiting = Box::new(tell);
        self
    }

    /// Takes the room if nobody has it.
    ///
    /// If the future is dropped meanwhile, the room may be taken until the lease ends.
    ///
    /// # Errors
    /// See [`ClientError`]. After `OutcomeUnknown` the room may be taken until the lease ends.
    pub async fn try_once(self) -> Result<Attempt<Leadership>, ClientError> {
        self.lead(Patience::Once).await
    }

    /// Waits for the room for as long as it takes.
    ///
    /// # Errors
    /// Only if waiting doesn't help.
    pub async fn wait(self) -> Result<Leadership, ClientError> {
        match self.lead(Patience::Endless).await? {
            Attempt::Won(leadership) => Ok(leadership),
            Attempt::Follower(_) => unreachable!("endless patience ends with a lease or an error"),
        }
    }

    /// Waits for the room, but not longer than `patience`.
    ///
    /// # Errors
    /// If waiting doesn't help, or no node could decide when the time was over.
    pub async fn wait_timeout(self, patience: Duration) -> Result<Attempt<Leadership>, ClientError> {
        let until = Deadline::new(self.calls.caller.clock.now(), patience);
        self.lead(Patience::Until(until)).await
    }

    /// As [`Campaign::wait_timeout`], but nobody renews the lease: for programs that hand the token on.
    ///
    /// # Errors
    /// As there.
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
        // First without a wait: who waits wants to know for whom.
        let mut long_poll = Duration::ZERO;
        loop {
            let asked_at = clock.now();
            let answer = self.ask(long_poll).await;
            let remaining = patience.remaining(clock);
            match answer {
                // Most of a lease that was granted while the node held this request may have passed before the
                // answer came. The same question again says what is left, counted from a later moment.
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
                    let was_held = clock.now().since(asked_at) + LONG_POLL_SLACK >= long_poll;
                    if !was_held {
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

    /// Later than the node says by up to a tenth of the lease, so that a crowd doesn't come back as one.
    fn time_to_next_try(&self, follower: &Follower) -> Duration {
        let lease_duration = self.request.lease_duration().as_duration();
        Duration::from_millis(follower.retry_after_ms.max(100)) + Fraction::random().up_to_a_tenth_of(lease_duration)
    }

    async fn ask(&self, long_poll: Duration) -> Result<Attempt<Granted>, ClientError> {
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
