//! What can go wrong for a client, sorted by what its user can do about it.

use std::time::Duration;

use crate::domain::InvalidId;
use crate::wire::{ErrorBody, ErrorCode};

/// Why a request has no answer. That somebody else leads is not an error.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The request makes no sense. Nothing was sent.
    #[error("{0}")]
    Invalid(String),
    /// A token would be sent in clear to another machine. Nothing was sent.
    #[error("{host} is another machine, and http:// would show it tokens in clear; allow insecure HTTP to do so")]
    Cleartext {
        /// Which machine.
        host: String,
    },
    /// A node understood the request and says no; asking another node wouldn't help.
    #[error("{}", describe(.0))]
    Rejected(Rejection),
    /// Nothing was changed, and nothing will be: no node was reached that could decide.
    #[error("no node can decide: {0}")]
    Unavailable(String),
    /// The request may or may not have been carried out, or will be.
    #[error("whether the request was carried out is unknown: {0}")]
    OutcomeUnknown(String),
}

/// A node's reasoned no.
#[derive(Debug, Clone)]
pub struct Rejection {
    /// HTTP status.
    pub status: u16,
    /// The stable code of the contract.
    pub code: String,
    /// For people.
    pub message: String,
    /// Under which the node's trace events have it.
    pub request_id: String,
    /// When it may be worth asking again.
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

    /// Whether the code is this one.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code == code.as_str()
    }

    /// Whether it is a matter of time.
    pub(super) fn may_pass(&self) -> bool {
        self.is(ErrorCode::RateLimited) || self.is(ErrorCode::CapacityExceeded)
    }
}

fn describe(rejection: &Rejection) -> String {
    let Rejection { code, message, request_id, .. } = rejection;
    format!("{message} ({code}, request {request_id})")
}

impl ClientError {
    /// Whether the same request may succeed later. A campaign must be repeated with the same key, which
    /// [`Campaign`](super::Campaign) does.
    pub fn may_retry(&self) -> bool {
        match self {
            ClientError::Invalid(_) | ClientError::Cleartext { .. } => false,
            ClientError::Rejected(rejection) => rejection.may_pass(),
            ClientError::Unavailable(_) | ClientError::OutcomeUnknown(_) => true,
        }
    }

    /// Whether a lease may live in spite of this error: one that was held before, or one that a campaign won
    /// without hearing of it. Only a node's word that the lease is not current proves the contrary.
    pub fn may_still_hold(&self) -> bool {
        !matches!(self, ClientError::Rejected(rejection) if rejection.is(ErrorCode::LeaseNotCurrent))
    }

    /// The contract's code, if a node gave one.
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Rejected(rejection) => Some(&rejection.code),
            _ => None,
        }
    }

    /// When it may be worth asking again, if a node said so.
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
