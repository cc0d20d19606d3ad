//! One call, carried out by whichever node can: which node to ask, for how long, and what to make of an answer.
//!
//! The node that answered last is asked first. A refused or broken connection, a time-out, any 5xx, or an answer
//! that isn't quorate's moves on to the next one at once; after a whole round without success the caller pauses.
//! Each try may take `remaining / (nodes + 1)`, so that every node gets one before the deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use reqwest::{Method, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::backoff::{Backoff, Fraction};
use super::error::{ClientError, Rejection};
use super::holder_clock::{Deadline, HolderClock, HolderInstant};
use crate::wire::{ErrorBody, ErrorCode};

/// The most that one try may take, however much time is left: a node that hasn't answered by then hangs.
const TRY_MAX: Duration = Duration::from_secs(2);
/// The least that one try gets: less wouldn't reach a node on another machine.
const TRY_MIN: Duration = Duration::from_millis(20);
/// The most that is read of an answer. The longest real one has metadata of 4 KiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The nodes, and how to call them.
pub(super) struct Caller {
    pub http: reqwest::Client,
    /// Without a slash at the end; at least one.
    pub urls: Vec<String>,
    /// The place of the node to ask first.
    pub current: AtomicUsize,
    pub access_token: Option<SecretString>,
    /// The machine to which a token would travel unencrypted, unless that is allowed.
    pub exposed_host: Option<String>,
    /// How long a request may take, all tries included.
    pub request_deadline: Duration,
    pub clock: Arc<dyn HolderClock>,
}

/// What to ask.
pub(super) struct Call<'a> {
    pub method: Method,
    pub path: String,
    pub body: Option<Zeroizing<Vec<u8>>>,
    pub idempotency_key: Option<&'a SecretString>,
    /// How long a node was asked to wait before it answers.
    pub long_poll: Duration,
}

impl Call<'_> {
    pub fn get(path: String) -> Self {
        Call { method: Method::GET, path, body: None, idempotency_key: None, long_poll: Duration::ZERO }
    }

    pub fn post(path: String, body: &impl serde::Serialize) -> Self {
        let body = Zeroizing::new(serde_json::to_vec(body).expect("a wire type is always JSON"));
        Call { method: Method::POST, path, body: Some(body), idempotency_key: None, long_poll: Duration::ZERO }
    }
}

/// An answer, and what it is worth.
pub(super) struct Answer<T> {
    pub body: T,
    /// Before the first byte of the try that was answered.
    pub sent_at: HolderInstant,
    /// Which node answered.
    pub server: String,
}

/// How one try failed.
enum TryError {
    /// Asking elsewhere won't help.
    Rejected(Rejection),
    /// Another node may do better.
    AskNext { what: String, outcome_unknown: bool, retry_after: Option<Duration> },
}

impl Caller {
    /// Asks one node after the other until one answers or `deadline` is over.
    pub async fn call<T: DeserializeOwned>(
        &self,
        call: &Call<'_>,
        deadline: Deadline,
    ) -> Result<Answer<T>, ClientError> {
        let mut backoff = Backoff::new();
        let mut last = "there was no time to ask".to_owned();
        let mut outcome_unknown = false;
        let mut asked_to_pause = None;
        let mut rate_limited = false;
        for tries in 1_usize.. {
            let remaining = deadline.remaining(self.clock.now());
            if remaining.is_zero() {
                break;
            }
            let place = self.current.load(Ordering::Relaxed) % self.urls.len();
            let server = &self.urls[place];
            let sent_at = self.clock.now();
            let answer =
                tokio::time::timeout(self.time_for_one_try(remaining, call), self.try_once(server, call)).await;
            match answer {
                Ok(Ok(body)) => return Ok(Answer { body, sent_at, server: server.clone() }),
                Ok(Err(TryError::Rejected(rejection))) if rejection.is(ErrorCode::RateLimited) => {
                    last = format!("{server}: {}", rejection.message);
                    asked_to_pause = rejection.retry_after;
                    rate_limited = true;
                    if asked_to_pause.is_none_or(|pause| pause >= deadline.remaining(self.clock.now())) {
                        return Err(ClientError::Rejected(rejection));
                    }
                }
                Ok(Err(TryError::Rejected(rejection))) => return Err(ClientError::Rejected(rejection)),
                Ok(Err(TryError::AskNext { what, outcome_unknown: unknown, retry_after })) => {
                    tracing::debug!(%server, path = %call.path, %what, "a try failed; the next node is asked");
                    last = format!("{server}: {what}");
                    outcome_unknown |= unknown;
                    asked_to_pause = retry_after.min(asked_to_pause.or(retry_after));
                }
                Err(_) => {
                    tracing::debug!(%server, path = %call.path, "a try takes too long; the next node is asked");
                    last = format!("{server}: no answer in time");
                    outcome_unknown = true;
                }
            }
            // Whoever else found out first has moved on already.
            let next = (place + 1) % self.urls.len();
            let _ = self.current.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
            if tries.is_multiple_of(self.urls.len()) {
                let remaining = deadline.remaining(self.clock.now());
                // A holder that is short of time must get several more rounds, whatever a node that can't decide
                // advises. A rate limit is another matter: coming back early is what it is there against.
                let pause_max = if rate_limited { remaining } else { remaining / 5 };
                let pause = backoff.next(Fraction::random()).max(asked_to_pause.take().unwrap_or_default());
                tokio::time::sleep(pause.min(pause_max)).await;
                rate_limited = false;
            }
        }
        Err(if outcome_unknown { ClientError::OutcomeUnknown(last) } else { ClientError::Unavailable(last) })
    }

    /// When a request that starts now must have its answer.
    pub fn deadline(&self) -> Deadline {
        Deadline::new(self.clock.now(), self.request_deadline)
    }

    /// Fails if a token would travel unencrypted to another machine.
    pub fn may_send_secrets(&self) -> Result<(), ClientError> {
        match self.exposed_host.clone() {
            None => Ok(()),
            Some(host) => Err(ClientError::Cleartext { host }),
        }
    }

    fn time_for_one_try(&self, remaining: Duration, call: &Call<'_>) -> Duration {
        let nodes = u32::try_from(self.urls.len()).unwrap_or(u32::MAX);
        let remaining = remaining.saturating_sub(call.long_poll);
        let share = remaining / nodes.saturating_add(1);
        call.long_poll + share.clamp(TRY_MIN, TRY_MAX)
    }

    async fn try_once<T: DeserializeOwned>(&self, server: &str, call: &Call<'_>) -> Result<T, TryError> {
        let sent = self.request(server, call).send().await;
        let response = sent.map_err(|error| TryError::AskNext {
            // A connection that was never made has carried nothing.
            outcome_unknown: !error.is_connect(),
            what: transport_failure(&error).to_owned(),
            retry_after: None,
        })?;
        let status = response.status();
        let body = read_body(response).await.map_err(|what| TryError::AskNext {
            what,
            outcome_unknown: true,
            retry_after: None,
        })?;
        if status == StatusCode::OK || status == StatusCode::CREATED {
            return serde_json::from_slice(&body).map_err(|_| not_quorate(status));
        }
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) if status.is_server_error() => Err(TryError::AskNext {
                outcome_unknown: body.code != ErrorCode::Unavailable.as_str(),
                retry_after: body.retry_after_ms.map(Duration::from_millis),
                what: Rejection::new(status.as_u16(), body).message,
            }),
            Ok(body) if status.is_client_error() => Err(TryError::Rejected(Rejection::new(status.as_u16(), body))),
            _ => Err(not_quorate(status)),
        }
    }

    /// A request that shows who is asking.
    pub fn request(&self, server: &str, call: &Call<'_>) -> reqwest::RequestBuilder {
        let mut request = self.http.request(call.method.clone(), format!("{server}{}", call.path));
        if let Some(body) = &call.body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_vec());
        }
        if let Some(key) = call.idempotency_key {
            request = request.header("Idempotency-Key", secret_header(key));
        }
        if let Some(token) = &self.access_token {
            let bearer = SecretString::from(format!("Bearer {}", token.expose_secret()));
            request = request.header(header::AUTHORIZATION, secret_header(&bearer));
        }
        request
    }

    /// The node to ask first.
    pub fn current_server(&self) -> &str {
        &self.urls[self.current.load(Ordering::Relaxed) % self.urls.len()]
    }

    /// Leaves a node that failed, unless somebody else has.
    pub fn leave(&self, server: &str) {
        if let Some(place) = self.urls.iter().position(|url| url == server) {
            let next = (place + 1) % self.urls.len();
            let _ = self.current.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// A header that no debug output shows.
fn secret_header(secret: &SecretString) -> header::HeaderValue {
    // Only visible ASCII gets this far: `ClientBuilder` checks the access token, and keys are our own.
    let mut value =
        header::HeaderValue::from_str(secret.expose_secret()).unwrap_or_else(|_| header::HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// A proxy's error page, a captive portal, another service: neither a yes nor a no.
fn not_quorate(status: StatusCode) -> TryError {
    let what = format!("an answer that isn't quorate's (HTTP {})", status.as_u16());
    TryError::AskNext { what, outcome_unknown: true, retry_after: None }
}

fn transport_failure(error: &reqwest::Error) -> &'static str {
    if error.is_connect() { "no connection" } else { "the connection broke" }
}

async fn read_body(response: reqwest::Response) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut body = Zeroizing::new(Vec::new());
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| "the connection broke".to_owned())?;
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err("an answer that is too long".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests;
