//! The errors that each operation can end with.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response as ApiResponse, ResponseBuilder};

use super::headers::text_header;
use crate::wire::ErrorCode;

macro_rules! errors_of {
    ($($(#[$doc:meta])* $name:ident: $($code:ident),+;)+) => {
        $(
            $(#[$doc])*
            pub struct $name;

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<ApiResponse>> {
                    error_responses(&[$(ErrorCode::$code),+])
                }
            }
        )+
    };
}

errors_of! {
    /// How making a room can fail.
    CreateErrors: AuthenticationRequired, AuthenticationFailed, Forbidden, RateLimited, InternalError, Unavailable;
    /// How a campaign can fail.
    CampaignErrors: InvalidInput, InvalidTtl, AuthenticationRequired, AuthenticationFailed, Forbidden,
        CapacityExceeded, PayloadTooLarge, UnsupportedMediaType, RateLimited, InternalError, Unavailable,
        OutcomeUnknown;
    /// How a renewal can fail.
    RenewErrors: InvalidInput, InvalidTtl, AuthenticationRequired, AuthenticationFailed, Forbidden, LeaseNotCurrent,
        PayloadTooLarge, UnsupportedMediaType, InternalError, Unavailable, OutcomeUnknown;
    /// How resigning can fail.
    ResignErrors: InvalidInput, AuthenticationRequired, AuthenticationFailed, Forbidden, LeaseNotCurrent,
        PayloadTooLarge, UnsupportedMediaType, InternalError, Unavailable, OutcomeUnknown;
    /// How a look can fail.
    ViewErrors: InvalidInput, AuthenticationRequired, AuthenticationFailed, Forbidden, InternalError, Unavailable;
    /// How opening a stream can fail.
    WatchErrors: InvalidInput, AuthenticationRequired, AuthenticationFailed, Forbidden, RateLimited, InternalError,
        Unavailable;
    /// How a node can be unwell.
    HealthErrors: InternalError, Unavailable;
    /// What can happen anywhere.
    StatusErrors: InternalError;
}

/// One response for each status, since a status can stand for several codes.
fn error_responses(codes: &[ErrorCode]) -> BTreeMap<String, RefOr<ApiResponse>> {
    let mut by_status = BTreeMap::<u16, Vec<&str>>::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(code.as_str());
    }
    by_status.into_iter().map(|(status, codes)| (status.to_string(), error_response(status, &codes).into())).collect()
}

fn error_response(status: u16, codes: &[&str]) -> ApiResponse {
    let description = codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(" or ");
    let schema = Ref::from_schema_name("ErrorBody");
    let mut response = ResponseBuilder::new()
        .description(description)
        .content("application/json", ContentBuilder::new().schema(Some(schema)).build());
    if matches!(status, 409 | 429 | 503) {
        response = response.header("Retry-After", text_header("Whole seconds, rounded up; where it is known"));
    }
    if status == 401 {
        response = response.header("WWW-Authenticate", text_header("Always `Bearer`"));
    }
    response.build()
}
