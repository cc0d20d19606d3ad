//! The parts of the OpenAPI document that the handlers' own types can't say: the title, the errors that each
//! operation can end with, and the headers that every response has.

mod links;

use std::collections::BTreeMap;

use axum::Extension;
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::schema::{Object, ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response as ApiResponse, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses, OpenApi, PartialSchema, ToSchema};

pub use links::add_links;

use super::extract::ConsistencyWord;
use crate::wire::{ErrorBody, ErrorCode, RaftRole, WatchEvent};

/// What the document starts from; `router` adds the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "quorate",
        description = "Leader election as a service. A candidate campaigns for a room and leads it for as long \
            as it renews its lease. Any node of the cluster answers any request. Errors are JSON, but for two: what is \
            not HTTP gets 400, and a head that is too large (16 KiB, 100 headers) 431, both without a body and with the \
            connection closed.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers((url = "/", description = "This node")),
    tags(
        (name = "elections", description = "Rooms: make, campaign, renew, resign, look, watch"),
        (name = "health", description = "How this node and its cluster stand"),
        (name = "meta", description = "About this interface"),
    ),
    components(schemas(ErrorBody, ErrorCode, RaftRole, WatchEvent)),
)]
struct Start;

/// The document without its operations.
pub fn start() -> utoipa::openapi::OpenApi {
    let mut document = Start::openapi();
    if let Some(components) = &mut document.components {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("Only where the operator has set access tokens."))
            .build();
        components.add_security_scheme("access_token", SecurityScheme::Http(bearer));
    }
    document
}

/// Adds the headers that `envelope` adds.
pub fn add_common_headers(document: &mut utoipa::openapi::OpenApi) {
    for item in document.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            for response in operation.responses.responses.values_mut() {
                if let RefOr::T(response) = response {
                    let request_id = text_header("The server's own id of this request");
                    response.headers.insert("X-Request-Id".to_owned(), request_id.into());
                    response.headers.insert("Cache-Control".to_owned(), text_header("Always `no-store`").into());
                }
            }
        }
    }
}

fn text_header(description: &str) -> Header {
    HeaderBuilder::new().schema(Some(Object::with_type(Type::String))).description(Some(description)).build()
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "meta",
    responses((status = 200, description = "OpenAPI 3.1", body = Object), StatusErrors),
)]
pub async fn openapi(Extension(OpenApiJson(json)): Extension<OpenApiJson>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// The document, ready to be sent.
#[derive(Clone)]
pub struct OpenApiJson(pub Bytes);

/// The room in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "only the document reads it; handlers use `extract::Room`")]
pub struct RoomPath {
    /// The room: any id of this form can be campaigned for.
    #[param(min_length = 8, max_length = 64, pattern = "^[A-Za-z0-9_-]{8,64}$", example = "nightly-report")]
    election_id: String,
}

/// What a campaign can say in its headers.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "only the document reads it; handlers use `extract::Idempotency`")]
pub struct CampaignHeaders {
    /// A fresh random secret per campaign attempt: the same key, room and candidate get the same term and token
    /// again for as long as that lease lives, from any node.
    #[param(
        rename = "Idempotency-Key",
        nullable = false,
        min_length = 16,
        max_length = 128,
        pattern = "^[!-~]{16,128}$"
    )]
    idempotency_key: Option<String>,
}

/// How fresh a look must be.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only the document reads it; handlers use `extract::HowFresh`")]
pub struct ViewQuery {
    /// `linearizable`, the default, is true at a moment after the question was asked; `local` is what this node
    /// knows, at once, quorum or not.
    #[param(inline, nullable = false, example = "local")]
    consistency: Option<ConsistencyWord>,
}

/// One event of a watch stream, as server-sent events have it: named fields, one of which holds our JSON.
pub struct StreamEvent;

impl ToSchema for StreamEvent {}

impl PartialSchema for StreamEvent {
    fn schema() -> RefOr<Schema> {
        let mut data = Object::with_type(Type::String);
        data.content_media_type = "application/json".to_owned();
        data.content_schema = Some(Box::new(Ref::from_schema_name("WatchEvent").into()));
        let field =
            |schema_type, always: Value| ObjectBuilder::new().schema_type(schema_type).enum_values(Some([always]));
        ObjectBuilder::new()
            .property("event", field(Type::String, json!("state")))
            .property("retry", field(Type::Integer, json!(1000)))
            .property("data", data)
            .required("event")
            .required("retry")
            .required("data")
            .into()
    }
}

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
