//! Every failure becomes a status and a stable code here.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::domain::InvalidId;
use crate::service::ServiceError;
use crate::wire::{ErrorBody, ErrorCode, InvalidRequest};

/// Why a request gets no answer, or not the one that it asked for.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HttpError {
    /// The service says so.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The request makes no sense. The text names fields and rules, and never quotes the request.
    #[error(transparent)]
    InvalidRequest(#[from] InvalidRequest),
    /// No access token came.
    #[error("no access token came")]
    AccessTokenMissing,
    /// A wrong access token came.
    #[error("a wrong access token came")]
    AccessTokenWrong,
    /// Elections are switched off.
    #[error("elections are switched off")]
    ElectionsOff,
    /// There is no such route.
    #[error("no such route")]
    NoSuchRoute,
    /// The route has no such method. Axum adds the `Allow` header.
    #[error("the route has no such method")]
    NoSuchMethod,
    /// The body is too large.
    #[error("the body is over {body_bytes_max} bytes")]
    BodyTooLarge {
        /// The limit.
        body_bytes_max: usize,
    },
    /// The body isn't JSON by its own account.
    #[error("the content type is not JSON")]
    NotJson,
    /// The client has used up a budget.
    #[error("over the limit of {limit}")]
    OverLimit {
        /// The limit, in words.
        limit: String,
        /// When there is some budget again.
        retry_after: Duration,
    },
    /// This node can't take it now; nothing was done about it.
    #[error("not now: {reason}")]
    NotNow {
        /// Why, for people.
        reason: String,
    },
    /// A bug. The cause is traced, and never sent.
    #[error("bug: {cause}")]
    Bug {
        /// What is known about it.
        cause: String,
    },
}

/// How soon to come back to a node that can't take a request now: about one raft election.
const NOT_NOW_RETRY_AFTER: Duration = Duration::from_secs(1);

impl HttpError {
    /// An answer to bad input.
    pub fn invalid_input(rule: impl Into<String>) -> Self {
        Self::InvalidRequest(InvalidRequest::Input(rule.into()))
    }

    /// What the client is told.
    fn public(&self) -> PublicError {
        use ErrorCode as Code;
        match self {
            Self::Service(ServiceError::NotHolder) => PublicError::new(Code::LeaseNotCurrent, "Lease is not current")
                .details("the token is not that of the current lease: it expired, was resigned or was never issued"),
            Self::Service(ServiceError::CapacityReached { retry_after }) => {
                PublicError::new(Code::CapacityExceeded, "Capacity exceeded")
                    .details("live leases are at the configured maximum")
                    .retry_after(*retry_after)
            }
            Self::Service(ServiceError::Unavailable { reason, retry_after }) => {
                PublicError::new(Code::Unavailable, "Unavailable; nothing was changed")
                    .details(reason)
                    .retry_after(*retry_after)
            }
            Self::Service(ServiceError::OutcomeUnknown) => PublicError::new(Code::OutcomeUnknown, "Outcome unknown")
                .details(
                    "it may or may not have happened: ask again with the same Idempotency-Key, or read the status",
                ),
            Self::InvalidRequest(invalid @ InvalidRequest::Input(_)) => {
                PublicError::new(Code::InvalidInput, "Invalid input").details(&invalid.to_string())
            }
            Self::InvalidRequest(invalid @ InvalidRequest::Ttl) => {
                PublicError::new(Code::InvalidTtl, "Invalid TTL").details(&invalid.to_string())
            }
            Self::AccessTokenMissing => PublicError::new(Code::AuthenticationRequired, "Authentication required")
                .details("send an access token as Authorization: Bearer"),
            Self::AccessTokenWrong => PublicError::new(Code::AuthenticationFailed, "Authentication failed"),
            Self::ElectionsOff => PublicError::new(Code::Forbidden, "Elections are switched off here"),
            Self::NoSuchRoute => PublicError::new(Code::NotFound, "Not found"),
            Self::NoSuchMethod => PublicError::new(Code::MethodNotAllowed, "Method not allowed"),
            Self::BodyTooLarge { .. } => {
                PublicError::new(Code::PayloadTooLarge, "Payload too large").details(&self.to_string())
            }
            Self::NotJson => PublicError::new(Code::UnsupportedMediaType, "Unsupported media type")
                .details("send the body with content-type: application/json"),
            Self::OverLimit { limit, retry_after } => {
                PublicError::new(Code::RateLimited, "Rate limit exceeded").details(limit).retry_after(*retry_after)
            }
            Self::NotNow { reason } => PublicError::new(Code::Unavailable, "Unavailable; nothing was changed")
                .details(reason)
                .retry_after(NOT_NOW_RETRY_AFTER),
            Self::Bug { .. } => PublicError::new(Code::InternalError, "Internal error"),
        }
    }

    /// Writes the failure into its response. Headers that are there already, such as `Allow`, stay.
    pub fn write(&self, response: Response, request_id: &str) -> Response {
        if let Self::Bug { cause } = self {
            tracing::error!(%cause, "a bug; the client is told only the request id");
        }
        let public = self.public();
        let retry_after_ms = public.retry_after.map(millis_rounded_up);
        let (mut parts, _) = response.into_parts();
        parts.status = public.status();
        if let Some(millis) = retry_after_ms {
            parts.headers.insert(header::RETRY_AFTER, HeaderValue::from(millis.div_ceil(1000)));
        }
        if parts.status == StatusCode::UNAUTHORIZED {
            parts.headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let (body_parts, body) = Json(ErrorBody {
            error: public.error.to_owned(),
            code: public.code.as_str().to_owned(),
            details: public.details,
            retry_after_ms,
            request_id: request_id.to_owned(),
        })
        .into_response()
        .into_parts();
        replace_content_headers(&mut parts.headers, &body_parts.headers);
        Response::from_parts(parts, body)
    }
}

/// The empty body that was there may have been announced with a length already.
fn replace_content_headers(headers: &mut HeaderMap, with: &HeaderMap) {
    for name in [header::CONTENT_LENGTH, header::CONTENT_TYPE] {
        headers.remove(&name);
        if let Some(value) = with.get(&name) {
            headers.insert(name, value.clone());
        }
    }
}

/// The body comes later: only [`super::envelope`] knows the request id.
impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut response = self.public().status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<InvalidId> for HttpError {
    fn from(invalid: InvalidId) -> Self {
        Self::InvalidRequest(invalid.into())
    }
}

struct PublicError {
    code: ErrorCode,
    error: &'static str,
    details: Option<String>,
    retry_after: Option<Duration>,
}

impl PublicError {
    fn new(code: ErrorCode, error: &'static str) -> Self {
        Self { code, error, details: None, retry_after: None }
    }

    fn details(mut self, details: &str) -> Self {
        self.details = Some(details.to_owned());
        self
    }

    fn retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).expect("each code of the contract has a valid status")
    }
}

/// Rounded up, so that nobody who waits so long comes too early.
fn millis_rounded_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
