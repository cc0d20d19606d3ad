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
    /// The errors of creating a room.
    CreateErrors: AuthenticationRequired, AuthenticationFailed, Forbidden, RateLimited, InternalError, Unavailable;
    /// The errors of a campaign.
    CampaignErrors: InvalidInput, InvalidTtl, AuthenticationRequired, AuthenticationFailed, Forbidden,
        CapacityExceeded, PayloadTooLarge, UnsupportedMediaType, RateLimited, InternalError, Unavailable,
        OutcomeUnknown;
    /// The errors of a renewal.
    RenewErrors: InvalidInput, InvalidTtl, AuthenticationRequired, AuthenticationFailed, Forbidden, LeaseNotCurrent,
        PayloadTooLarge, UnsupportedMediaType, InternalError, Unavailable, OutcomeUnknown;
    /// The errors of a resignation.
    ResignErrors: InvalidInput, AuthenticationRequired, AuthenticationFailed, Forbidden, LeaseNotCurrent,
        PayloadTooLarge, UnsupportedMediaType, InternalError, Unavailable, OutcomeUnknown;
    /// The errors of viewing a room.
    ViewErrors: InvalidInput, AuthenticationRequired, AuthenticationFailed, Forbidden, InternalError, Unavailable;
    /// The errors of opening a watch stream.
    WatchErrors: InvalidInput, AuthenticationRequired, AuthenticationFailed, Forbidden, RateLimited, InternalError,
        Unavailable;
    /// The errors of the health routes.
    HealthErrors: InternalError, Unavailable;
    /// The error of the status and of this document. Every route can have it.
    StatusErrors: InternalError;
}

/// One response for each status. A status can stand for several codes.
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
        response = response.header(
            "Retry-After",
            text_header("When to retry, in whole seconds, rounded up. Left out if it is not known"),
        );
    }
    if status == 401 {
        response = response.header("WWW-Authenticate", text_header("Always `Bearer`"));
    }
    response.build()
}
