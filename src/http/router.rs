//! Every route of the client listener in one table. The router and the OpenAPI document are both made from it, so both
//! have the same routes.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::context::HandlerContext;
use super::error::HttpError;
use super::openapi::document::{self, OpenApiJson};
use super::openapi::{add_common_headers, add_default_ttl, add_examples, add_links};
use super::places::Places;
use super::settings::HttpSettings;
use super::{envelope, gate, health, rooms, watch};
use crate::random::Random;
use crate::service::RoomService;

/// The router of the client listener. Its handlers need the clients' addresses: serve it by
/// `into_make_service_with_connect_info::<SocketAddr>()`.
pub fn build_router(service: RoomService, settings: HttpSettings, random: Arc<dyn Random>) -> Router {
    let context = HandlerContext::new(service, settings, random);
    let (router, document) = route_table(&context);
    add_common_layers(router, &document, context)
}

/// The routes, in groups with the same checks.
fn route_table(context: &Arc<HandlerContext>) -> (Router<Arc<HandlerContext>>, utoipa::openapi::OpenApi) {
    // Campaigns have their own places, because each can wait for a minute, and holders must be able to renew meanwhile.
    let campaigns = OpenApiRouter::new()
        .routes(routes!(rooms::create))
        .routes(routes!(rooms::campaign))
        .route_layer(Extension(Places::for_requests(context.settings.requests_in_flight_max)));
    let leases_and_views = OpenApiRouter::new()
        .routes(routes!(rooms::renew))
        .routes(routes!(rooms::resign))
        .routes(routes!(rooms::view))
        .routes(routes!(watch::watch))
        .route_layer(Extension(Places::for_requests(context.settings.requests_in_flight_max)));
    let guarded = campaigns.merge(leases_and_views).route_layer(from_fn_with_state(Arc::clone(context), gate::guard));
    let open = OpenApiRouter::new()
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(health::health))
        .routes(routes!(health::status))
        .routes(routes!(document::openapi));
    let (router, mut openapi) =
        OpenApiRouter::with_openapi(document::start()).merge(guarded).merge(open).split_for_parts();
    add_common_headers(&mut openapi);
    add_links(&mut openapi);
    add_default_ttl(&mut openapi);
    add_examples(&mut openapi);
    (router, openapi)
}

/// Adds the layers that every request passes through, even if its route is unknown.
pub(super) fn add_common_layers(
    router: Router<Arc<HandlerContext>>,
    document: &utoipa::openapi::OpenApi,
    context: Arc<HandlerContext>,
) -> Router {
    let json = document.to_json().expect("an OpenAPI document is always JSON");
    router
        .fallback(async || HttpError::NoSuchRoute)
        .method_not_allowed_fallback(async || HttpError::NoSuchMethod)
        .layer(Extension(OpenApiJson(json.into())))
        .layer(DefaultBodyLimit::max(context.settings.body_bytes_max))
        .layer(CatchPanicLayer::custom(envelope::panicked))
        .layer(from_fn_with_state(Arc::clone(&context), envelope::envelop))
        .with_state(context)
}
