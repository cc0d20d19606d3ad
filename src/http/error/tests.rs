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
async fn a_wait_is_rounded_up_so_that_no_client_retries_too_early() {
    let retry_after = Duration::from_nanos(1);
    let (response, body) = written(HttpError::OverLimit { limit: "one".to_owned(), retry_after }).await;
    assert_eq!((body.retry_after_ms, response.headers()["retry-after"].to_str().unwrap()), (Some(1), "1"));
}

#[tokio::test]
async fn earlier_headers_stay_except_those_of_the_empty_body() {
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
