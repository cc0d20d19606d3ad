//! Turns every failure into a status and a stable code.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::domain::InvalidId;
use crate::service::ServiceError;
use crate::wire::{ErrorBody, ErrorCode, InvalidRequest};

/// Why a request failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HttpError {
    /// The service could not do it.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The request is malformed. The text names the field and its rule, and never quotes the request.
    #[error(transparent)]
    InvalidRequest(#[from] InvalidRequest),
    /// The request has no access token.
    #[error("the request has no access token")]
    AccessTokenMissing,
    /// The request's access token is unknown.
    #[error("the access token is unknown")]
    AccessTokenWrong,
    /// Elections are switched off.
    #[error("elections are switched off")]
    ElectionsOff,
    /// There is no such route.
    #[error("no such route")]
    NoSuchRoute,
    /// The route does not have the request's method. Axum adds the `Allow` header.
    #[error("the route has no such method")]
    NoSuchMethod,
    /// The body is too large.
    #[error("the body must have at most {body_bytes_max} bytes")]
    BodyTooLarge {
        /// The limit.
        body_bytes_max: usize,
    },
    /// The content type is not JSON.
    #[error("the content type is not JSON")]
    NotJson,
    /// The client has used up a limit.
    #[error("{limit}")]
    OverLimit {
        /// The limit, and what to do about it.
        limit: String,
        /// The time after which a retry makes sense.
        retry_after: Duration,
    },
    /// This node cannot take the request now. Nothing was changed.
    #[error("not now: {reason}")]
    NotNow {
        /// The reason, as a sentence for people.
        reason: String,
    },
    /// A bug. The cause goes into the trace, and is never sent.
    #[error("bug: {cause}")]
    Bug {
        /// All that is known about the bug.
        cause: String,
    },
}

/// When to retry at a node that cannot take a request now: about the duration of one raft election.
const NOT_NOW_RETRY_AFTER: Duration = Duration::from_secs(1);

impl HttpError {
    /// The error for a request that breaks this rule.
    pub fn invalid_input(rule: impl Into<String>) -> Self {
        Self::InvalidRequest(InvalidRequest::Input(rule.into()))
    }

    /// The part that the client sees.
    fn public(&self) -> PublicError {
        use ErrorCode as Code;
        match self {
            Self::Service(ServiceError::NotHolder) => PublicError::new(Code::LeaseNotCurrent, "Lease is not current")
                .details("the leader_token does not belong to the current lease: stop leading, then campaign again"),
            Self::Service(ServiceError::CapacityReached { retry_after }) => {
                PublicError::new(Code::CapacityExceeded, "Capacity exceeded")
                    .details("there are as many live leases as --max-live-leases allows: retry after retry_after_ms")
                    .retry_after(*retry_after)
            }
            Self::Service(ServiceError::Unavailable { reason, retry_after }) => {
                PublicError::new(Code::Unavailable, "Unavailable; nothing was changed")
                    .details(reason)
                    .retry_after(*retry_after)
            }
            Self::Service(ServiceError::OutcomeUnknown) => PublicError::new(Code::OutcomeUnknown, "Outcome unknown")
                .details(
                    "the change may or may not have been made: read the election's status, or repeat the request \
                     (a campaign with the same Idempotency-Key)",
                ),
            Self::InvalidRequest(invalid @ InvalidRequest::Input(_)) => {
                PublicError::new(Code::InvalidInput, "Invalid input").details(&invalid.to_string())
            }
            Self::InvalidRequest(invalid @ InvalidRequest::Ttl) => {
                PublicError::new(Code::InvalidTtl, "Invalid TTL").details(&invalid.to_string())
            }
            Self::AccessTokenMissing => PublicError::new(Code::AuthenticationRequired, "Authentication required")
                .details("this node requires an access token: send the header Authorization: Bearer ACCESS_TOKEN"),
            Self::AccessTokenWrong => PublicError::new(Code::AuthenticationFailed, "Authentication failed")
                .details("this node does not know the access token: ask its operator for a valid one"),
            Self::ElectionsOff => PublicError::new(Code::Forbidden, "Elections are switched off here")
                .details("this node was started with --no-elections: use another node"),
            Self::NoSuchRoute => {
                PublicError::new(Code::NotFound, "Not found").details("see GET /openapi.json for the routes")
            }
            Self::NoSuchMethod => PublicError::new(Code::MethodNotAllowed, "Method not allowed")
                .details("the Allow header lists the methods of this route"),
            Self::BodyTooLarge { .. } => {
                PublicError::new(Code::PayloadTooLarge, "Payload too large").details(&self.to_string())
            }
            Self::NotJson => PublicError::new(Code::UnsupportedMediaType, "Unsupported media type")
                .details("send the body with the header Content-Type: application/json"),
            Self::OverLimit { limit, retry_after } => {
                PublicError::new(Code::RateLimited, "Rate limit exceeded").details(limit).retry_after(*retry_after)
            }
            Self::NotNow { reason } => PublicError::new(Code::Unavailable, "Unavailable; nothing was changed")
                .details(reason)
                .retry_after(NOT_NOW_RETRY_AFTER),
            Self::Bug { .. } => PublicError::new(Code::InternalError, "Internal error")
                .details("this is a bug: report it with the request_id; the server's trace has the cause with that id"),
        }
    }

    /// Writes the failure into its response. Headers that are there already, such as `Allow`, stay.
    pub fn write(&self, response: Response, request_id: &str) -> Response {
        if let Self::Bug { cause } = self {
            tracing::error!(%cause, "a bug; the client gets only the request id");
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

/// The response may have the length of its empty body in its headers already. The new body's headers replace them.
fn replace_content_headers(headers: &mut HeaderMap, with: &HeaderMap) {
    for name in [header::CONTENT_LENGTH, header::CONTENT_TYPE] {
        headers.remove(&name);
        if let Some(value) = with.get(&name) {
            headers.insert(name, value.clone());
        }
    }
}

/// The body is added later, by `envelope`, which knows the request id.
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

/// The part of a failure that the client sees.
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
        StatusCode::from_u16(self.code.status()).expect("each error code has a valid status")
    }
}

/// Rounded up: a client that waits for this long must not retry too early.
fn millis_rounded_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
