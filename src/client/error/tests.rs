use super::*;

fn rejection(code: ErrorCode) -> ClientError {
    let body = ErrorBody {
        error: "no".into(),
        code: code.as_str().into(),
        details: Some("because".into()),
        retry_after_ms: Some(1500),
        request_id: "req_1".into(),
    };
    ClientError::Rejected(Rejection::new(code.status(), body))
}

#[test]
fn only_a_lease_that_is_not_current_is_proof_of_a_loss() {
    assert!(!rejection(ErrorCode::LeaseNotCurrent).may_still_hold());
    for code in [ErrorCode::RateLimited, ErrorCode::AuthenticationFailed, ErrorCode::InvalidInput] {
        assert!(rejection(code).may_still_hold(), "{code:?}");
    }
    assert!(ClientError::Unavailable(String::new()).may_still_hold());
    assert!(ClientError::OutcomeUnknown(String::new()).may_still_hold());
}

#[test]
fn errors_that_time_can_mend_may_be_retried() {
    assert!(rejection(ErrorCode::RateLimited).may_retry());
    assert!(rejection(ErrorCode::CapacityExceeded).may_retry());
    assert!(ClientError::Unavailable(String::new()).may_retry());
    assert!(ClientError::OutcomeUnknown(String::new()).may_retry());
    assert!(!rejection(ErrorCode::InvalidTtl).may_retry());
    assert!(!rejection(ErrorCode::LeaseNotCurrent).may_retry());
    assert!(!ClientError::Invalid(String::new()).may_retry());
    assert_eq!(rejection(ErrorCode::RateLimited).retry_after(), Some(Duration::from_millis(1500)));
}

#[test]
fn the_text_of_a_rejection_has_the_reason_the_code_and_the_request_id() {
    let text = rejection(ErrorCode::Forbidden).to_string();
    assert_eq!(text, "no: because (forbidden, request req_1)");
}
