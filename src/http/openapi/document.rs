//! The document without its operations, and the route that serves it.

use axum::Extension;
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use super::errors::StatusErrors;
use crate::wire::{ErrorBody, ErrorCode, RaftRole, WatchEvent};

/// The fixed parts of the document. `router` adds the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "quorate",
        description = "Leader election as a service. A candidate campaigns for a room, and leads it for as long \
            as it renews its lease. Any node of the cluster answers any request. Errors are JSON, with two exceptions: \
            bytes that are not HTTP get 400, and a head over the limit (16 KiB, 100 headers) gets 431. Both of these \
            answers have no body, and the connection is closed.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers((url = "/", description = "This node")),
    tags(
        (name = "elections", description = "Rooms: create, campaign, renew, resign, view, watch"),
        (name = "health", description = "The state of this node and its cluster"),
        (name = "meta", description = "This interface"),
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
            .description(Some("Required only if the operator has set access tokens."))
            .build();
        components.add_security_scheme("access_token", SecurityScheme::Http(bearer));
    }
    document
}

/// Read this document.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "meta",
    responses((status = 200, description = "OpenAPI 3.1", body = Object), StatusErrors),
)]
pub async fn openapi(Extension(OpenApiJson(json)): Extension<OpenApiJson>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// The document as JSON.
#[derive(Clone)]
pub struct OpenApiJson(pub Bytes);
