//! Makes the HTTP calls: chooses the node, limits the time of each try, and sorts the answers.
//!
//! The node that answered last is asked first. After a failed connection, a timeout, a 5xx, or an answer that is not
//! from quorate, the next node is asked at once. After a round without success at any node, the caller pauses.
//! Each try may take `remaining / (nodes + 1)`, so that every node gets a try before the deadline.

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

/// The longest time for one try. A node that takes longer is treated as hung.
const TRY_MAX: Duration = Duration::from_secs(2);
/// The shortest time for one try. Less is too short for an answer from another machine.
const TRY_MIN: Duration = Duration::from_millis(20);
/// The longest answer that is read. The longest real one carries metadata of 4 KiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

const CONNECTION_BROKE: &str = "the connection broke before the answer was complete";

/// The nodes of a cluster, and how to call them.
pub(super) struct Caller {
    pub http: reqwest::Client,
    /// At least one. None ends with a slash.
    pub urls: Vec<String>,
    /// The index in `urls` of the node to ask first.
    pub current: AtomicUsize,
    pub access_token: Option<SecretString>,
    /// The machine to which a token would travel unencrypted, unless that is allowed.
    pub exposed_host: Option<String>,
    /// How long a request may take, all tries included.
    pub request_deadline: Duration,
    pub clock: Arc<dyn HolderClock>,
}

/// One request, which can be sent to any node.
pub(super) struct Call<'a> {
    pub method: Method,
    pub path: String,
    pub body: Option<Zeroizing<Vec<u8>>>,
    pub idempotency_key: Option<&'a SecretString>,
    /// How long the node may wait for the room before it answers.
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

/// An answer, with what is needed to count a lease from it.
pub(super) struct Answer<T> {
    pub body: T,
    /// Read before the first byte of the answered try was sent.
    pub sent_at: HolderInstant,
    /// The URL of the node that answered.
    pub server: String,
}

/// How one try failed.
enum TryError {
    /// The node turned the request down. Another node would usually do the same.
    Rejected(Rejection),
    /// This node could not answer. The next one may.
    AskNext { what: String, outcome_unknown: bool, retry_after: Option<Duration> },
}

impl Caller {
    /// Asks one node after the other until one answers or the deadline passes.
    pub async fn call<T: DeserializeOwned>(
        &self,
        call: &Call<'_>,
        deadline: Deadline,
    ) -> Result<Answer<T>, ClientError> {
        let mut backoff = Backoff::new();
        let mut last = "the deadline passed before a node could be asked".to_owned();
        let mut outcome_unknown = false;
        let mut asked_to_pause = None;
        let mut rate_limited = false;
        for tries in 1_usize.. {
            let remaining = deadline.remaining(self.clock.now());
            if remaining.is_zero() {
                break;
            }
            let index = self.current.load(Ordering::Relaxed) % self.urls.len();
            let server = &self.urls[index];
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
                    tracing::debug!(%server, path = %call.path, %what, "a node cannot answer; the next one is asked");
                    last = format!("{server}: {what}");
                    outcome_unknown |= unknown;
                    asked_to_pause = retry_after.min(asked_to_pause.or(retry_after));
                }
                Err(_) => {
                    tracing::debug!(%server, path = %call.path, "a node did not answer in time; the next one is asked");
                    last = format!("{server}: no answer in time");
                    outcome_unknown = true;
                }
            }
            self.move_on_from(index);
            if tries.is_multiple_of(self.urls.len()) {
                let remaining = deadline.remaining(self.clock.now());
                // A node that cannot decide may advise a long pause. A holder that is short of time still needs several
                // more rounds, so the pause is limited. The pause of a rate limit is not: an early retry would only be
                // rejected again.
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

    /// Checks that no token would travel unencrypted to another machine, unless that is allowed.
    pub fn may_send_secrets(&self) -> Result<(), ClientError> {
        match self.exposed_host.clone() {
            None => Ok(()),
            Some(host) => Err(ClientError::Cleartext { host }),
        }
    }

    fn time_for_one_try(&self, remaining: Duration, call: &Call<'_>) -> Duration {
        let nodes = u32::try_from(self.urls.len()).unwrap_or(u32::MAX);
        let remaining = remaining.saturating_sub(call.long_poll);
        call.long_poll + (remaining / nodes.saturating_add(1)).clamp(TRY_MIN, TRY_MAX)
    }

    async fn try_once<T: DeserializeOwned>(&self, server: &str, call: &Call<'_>) -> Result<T, TryError> {
        let sent = self.request(server, call).send().await;
        let response = sent.map_err(|error| TryError::AskNext {
            // Without a connection, the node has received nothing.
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

    /// The HTTP request for one node, with the access token.
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

    /// Moves on to the next node, if `server` is still the first to ask.
    pub fn leave(&self, server: &str) {
        if let Some(index) = self.urls.iter().position(|url| url == server) {
            self.move_on_from(index);
        }
    }

    /// Makes the next node the first to ask. If another task has moved on from `index` already, its choice stays.
    fn move_on_from(&self, index: usize) {
        let next = (index + 1) % self.urls.len();
        let _ = self.current.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// A header value that debug output does not show.
fn secret_header(secret: &SecretString) -> header::HeaderValue {
    // The value is visible ASCII: `ClientBuilder` checks the access token, and the keys are made here.
    let mut value =
        header::HeaderValue::from_str(secret.expose_secret()).unwrap_or_else(|_| header::HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// The answer came from something else, such as a proxy, a captive portal or another service. It decides nothing.
fn not_quorate(status: StatusCode) -> TryError {
    let what = format!("the answer is not from quorate (HTTP {}); check the URL", status.as_u16());
    TryError::AskNext { what, outcome_unknown: true, retry_after: None }
}

fn transport_failure(error: &reqwest::Error) -> &'static str {
    if error.is_connect() { "no connection" } else { CONNECTION_BROKE }
}

async fn read_body(response: reqwest::Response) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut body = Zeroizing::new(Vec::new());
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| CONNECTION_BROKE.to_owned())?;
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err("the answer is too long".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests;
