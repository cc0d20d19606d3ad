use serde_json::json;

use super::*;

#[test]
fn each_code_has_the_text_of_the_contract() {
    for code in [
        ErrorCode::InvalidInput,
        ErrorCode::InvalidTtl,
        ErrorCode::AuthenticationRequired,
        ErrorCode::AuthenticationFailed,
        ErrorCode::Forbidden,
        ErrorCode::LeaseNotCurrent,
        ErrorCode::NotFound,
        ErrorCode::MethodNotAllowed,
        ErrorCode::CapacityExceeded,
        ErrorCode::PayloadTooLarge,
        ErrorCode::UnsupportedMediaType,
        ErrorCode::RateLimited,
        ErrorCode::InternalError,
        ErrorCode::Unavailable,
        ErrorCode::OutcomeUnknown,
    ] {
        assert_eq!(serde_json::to_value(code).unwrap(), json!(code.as_str()));
    }
}
