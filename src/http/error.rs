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
    fn told(&self) -> Told {
        use ErrorCode as Code;
        match self {
            Self::Service(ServiceError::NotHolder) => Told::new(Code::LeaseNotCurrent, "Lease is not current")
                .details("the token is not that of the current lease: it expired, was resigned or was never issued"),
            Self::Service(ServiceError::CapacityReached { retry_after }) => {
                Told::new(Code::CapacityExceeded, "Capacity exceeded")
                    .details("live leases are at the configured maximum")
                    .retry_after(*retry_after)
            }
            Self::Service(ServiceError::Unavailable { reason, retry_after }) => {
                Told::new(Code::Unavailable, "Unavailable; nothing was changed")
                    .details(reason)
                    .retry_after(*retry_after)
            }
            Self::Service(ServiceError::OutcomeUnknown) => Told::new(Code::OutcomeUnknown, "Outcome unknown").details(
                "it may or may not have happened: ask again with the same Idempotency-Key, or read the status",
            ),
            Self::InvalidRequest(invalid @ InvalidRequest::Input(_)) => {
                Told::new(Code::InvalidInput, "Invalid input").details(&invalid.to_string())
            }
            Self::InvalidRequest(invalid @ InvalidRequest::Ttl) => {
                Told::new(Code::InvalidTtl, "Invalid TTL").details(&invalid.to_string())
            }
            Self::AccessTokenMissing => Told::new(Code::AuthenticationRequired, "Authentication required")
                .details("send an access token as Authorization: Bearer"),
            Self::AccessTokenWrong => Told::new(Code::AuthenticationFailed, "Authentication failed"),
            Self::ElectionsOff => Told::new(Code::Forbidden, "Elections are switched off here"),
            Self::NoSuchRoute => Told::new(Code::NotFound, "Not found"),
            Self::NoSuchMethod => Told::new(Code::MethodNotAllowed, "Method not allowed"),
            Self::BodyTooLarge { .. } => {
                Told::new(Code::PayloadTooLarge, "Payload too large").details(&self.to_string())
            }
            Self::NotJson => Told::new(Code::UnsupportedMediaType, "Unsupported media type")
                .details("send the body with content-type: application/json"),
            Self::OverLimit { limit, retry_after } => {
                Told::new(Code::RateLimited, "Rate limit exceeded").details(limit).retry_after(*retry_after)
            }
            Self::NotNow { reason } => Told::new(Code::Unavailable, "Unavailable; nothing was changed")
                .details(reason)
                .retry_after(NOT_NOW_RETRY_AFTER),
            Self::Bug { .. } => Told::new(Code::InternalError, "Internal error"),
        }
    }

    /// Writes the failure into its response. Headers that are there already, such as `Allow`, stay.
    pub fn write(&self, response: Response, request_id: &str) -> Response {
        if let Self::Bug { cause } = self {
            tracing::error!(%cause, "a bug; the client is told only the request id");
        }
        let told = self.told();
        let retry_after_ms = told.retry_after.map(millis_rounded_up);
        let (mut parts, _) = response.into_parts();
        parts.status = told.status();
        if let Some(millis) = retry_after_ms {
            parts.headers.insert(header::RETRY_AFTER, HeaderValue::from(millis.div_ceil(1000)));
        }
        if parts.status == StatusCode::UNAUTHORIZED {
            parts.headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let (body_parts, body) = Json(ErrorBody {
            error: told.error.to_owned(),
            code: told.code.as_str().to_owned(),
            details: told.details,
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
        let mut response = self.told().status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<InvalidId> for HttpError {
    fn from(invalid: InvalidId) -> Self {
        Self::InvalidRequest(invalid.into())
    }
}

struct Told {
    code: ErrorCode,
    error: &'static str,
    details: Option<String>,
    retry_after: Option<Duration>,
}

impl Told {
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
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn written(error: impl Into<HttpError>) -> (Response<()>, ErrorBody) {
        let error = error.into();
        let (parts, body) = error.write(error.clone().into_response(), "req_1").into_parts();
        let body = to_bytes(body, 4096).await.unwrap();
        (Response::from_parts(parts, ()), serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn each_failure_of_the_service_has_its_status_and_code() {
        let (retry_after, reason) = (Duration::from_millis(1_200), "no quorum".to_owned());
        for (error, status, code, retry_after_ms) in [
            (ServiceError::NotHolder, 404, "lease_not_current", None),
            (ServiceError::CapacityReached { retry_after }, 409, "capacity_exceeded", Some(1_200)),
            (ServiceError::Unavailable { reason, retry_after }, 503, "unavailable", Some(1_200)),
            (ServiceError::OutcomeUnknown, 503, "outcome_unknown", None),
        ] {
            let (response, body) = written(error).await;
            assert_eq!((response.status().as_u16(), &*body.code), (status, code));
            assert_eq!(body.retry_after_ms, retry_after_ms);
            let header = response.headers().get("retry-after").map(|value| value.to_str().unwrap());
            assert_eq!(header, retry_after_ms.map(|_| "2"), "whole seconds, rounded up");
        }
    }

    #[tokio::test]
    async fn a_wait_is_rounded_up_so_that_nobody_comes_too_early() {
        let retry_after = Duration::from_nanos(1);
        let (response, body) = written(HttpError::OverLimit { limit: "one".to_owned(), retry_after }).await;
        assert_eq!((body.retry_after_ms, response.headers()["retry-after"].to_str().unwrap()), (Some(1), "1"));
    }

    #[tokio::test]
    async fn headers_that_are_there_already_stay_but_those_of_the_empty_body_go() {
        let mut response = HttpError::NoSuchMethod.into_response();
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        let response = HttpError::NoSuchMethod.write(response, "req_1");
        assert_eq!(response.headers()["allow"], "POST");
        assert_eq!(response.headers().get("content-length"), None);
        assert_eq!(response.headers()["content-type"], "application/json");
    }

    #[tokio::test]
    async fn the_cause_of_a_bug_is_not_sent() {
        let (_, body) = written(HttpError::Bug { cause: "/etc/secret".to_owned() }).await;
        assert!(!serde_json::to_string(&body).unwrap().contains("secret"));
    }
}
