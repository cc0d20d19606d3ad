//! Failures, sorted by the caller's next step.

use std::time::Duration;

use crate::domain::InvalidId;
use crate::wire::{ErrorBody, ErrorCode};

/// Why a request failed. If another candidate leads, that is not an error: see [`Attempt`](super::Attempt).
///
/// "Nothing was changed" and "the outcome is unknown" are different variants. After the second, the room may be
/// occupied.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A value is not valid. Nothing was sent. The text says which value, and what is valid.
    #[error("{0}")]
    Invalid(String),
    /// A token would travel unencrypted to another machine. Nothing was sent.
    ///
    /// [`ClientBuilder::allow_insecure_http`](super::ClientBuilder::allow_insecure_http) allows it.
    #[error("tokens would travel to {host} unencrypted; allow insecure HTTP if you trust the network between")]
    Cleartext {
        /// The other machine.
        host: String,
    },
    /// A node understood the request and turned it down. Another node would usually do the same.
    #[error("{}", describe(.0))]
    Rejected(Rejection),
    /// No node could decide: each was unreachable, or had no quorum. Nothing was changed, and nothing will be, so a
    /// retry is safe.
    #[error("no node can decide, and nothing was changed; try again later ({0})")]
    Unavailable(String),
    /// A node got the request, but its answer is missing. The request may have been carried out, or may still be.
    ///
    /// [`Election::status`](super::Election::status) shows who leads.
    #[error("the request may or may not have been carried out; check who leads, or try again ({0})")]
    OutcomeUnknown(String),
}

/// Why a node turned a request down (HTTP 4xx).
#[derive(Debug, Clone)]
pub struct Rejection {
    /// The HTTP status.
    pub status: u16,
    /// A stable code, for programs. Those of this version are in [`ErrorCode`].
    pub code: String,
    /// The reason, for people. It may change between versions.
    pub message: String,
    /// The id that the node's log has for this request.
    pub request_id: String,
    /// How long to wait before a retry can succeed, if the node said so.
    pub retry_after: Option<Duration>,
}

impl Rejection {
    pub(super) fn new(status: u16, body: ErrorBody) -> Rejection {
        let message = match body.details {
            Some(details) => format!("{}: {details}", body.error),
            None => body.error,
        };
        let retry_after = body.retry_after_ms.map(Duration::from_millis);
        Rejection { status, code: body.code, message, request_id: body.request_id, retry_after }
    }

    /// Whether [`code`](Rejection::code) is this one.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code == code.as_str()
    }

    /// Whether the same request can succeed later.
    pub(super) fn may_pass(&self) -> bool {
        self.is(ErrorCode::RateLimited) || self.is(ErrorCode::CapacityExceeded)
    }
}

fn describe(rejection: &Rejection) -> String {
    let Rejection { code, message, request_id, .. } = rejection;
    format!("{message} ({code}, request {request_id})")
}

impl ClientError {
    /// Whether the same request may succeed later.
    ///
    /// [`Campaign`](super::Campaign) retries by itself, always with the same idempotency key.
    pub fn may_retry(&self) -> bool {
        match self {
            ClientError::Invalid(_) | ClientError::Cleartext { .. } => false,
            ClientError::Rejected(rejection) => rejection.may_pass(),
            ClientError::Unavailable(_) | ClientError::OutcomeUnknown(_) => true,
        }
    }

    /// Whether the caller may hold a lease in spite of this error: an earlier one, or one that a campaign won although
    /// its answer did not arrive.
    ///
    /// False only if a node has said that the lease is not current.
    pub fn may_still_hold(&self) -> bool {
        !matches!(self, ClientError::Rejected(rejection) if rejection.is(ErrorCode::LeaseNotCurrent))
    }

    /// The code of a rejection. `None` for all other errors.
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Rejected(rejection) => Some(&rejection.code),
            _ => None,
        }
    }

    /// How long to wait before a retry can succeed. `None` if no node said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            ClientError::Rejected(rejection) => rejection.retry_after,
            _ => None,
        }
    }
}

impl From<InvalidId> for ClientError {
    fn from(invalid: InvalidId) -> Self {
        ClientError::Invalid(invalid.to_string())
    }
}

#[cfg(test)]
mod tests;
