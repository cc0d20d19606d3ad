//! The health of this node, for supervisors, load balancers and people. These routes need no access token.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::context::HandlerContext;
use super::error::HttpError;
use super::openapi::{HealthErrors, StatusErrors};
use crate::wire::{Health, HealthStatus, NodeReport};

const HEALTHY: Json<Health> = Json(Health { status: HealthStatus::Ok });

/// Whether this node itself works. The other nodes don't matter.
///
/// If it does not work, restart the node.
#[utoipa::path(
    get, path = "/livez", operation_id = "livez", tag = "health",
    responses((status = 200, description = "The node works", body = Health), HealthErrors),
)]
pub async fn livez(State(context): State<Arc<HandlerContext>>) -> Result<Json<Health>, HttpError> {
    if context.service.is_alive() {
        Ok(HEALTHY)
    } else {
        Err(HttpError::NotNow {
            reason: "this node's Raft core has stopped, for example because its disk failed: restart the node"
                .to_owned(),
        })
    }
}

/// Whether this node can serve a linearizable request now.
///
/// If it cannot, send requests to another node.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "health",
    responses((status = 200, description = "The node is ready", body = Health), HealthErrors),
)]
pub async fn readyz(State(context): State<Arc<HandlerContext>>) -> Result<Json<Health>, HttpError> {
    context.service.readiness().map(|()| HEALTHY).map_err(|reason| HttpError::NotNow { reason })
}

/// The same as `/readyz`.
#[utoipa::path(
    get, path = "/health", operation_id = "health", tag = "health",
    responses((status = 200, description = "The node is ready", body = Health), HealthErrors),
)]
pub async fn health(state: State<Arc<HandlerContext>>) -> Result<Json<Health>, HttpError> {
    readyz(state).await
}

/// The state of this node, and of its cluster as this node sees it.
#[utoipa::path(
    get, path = "/status", operation_id = "status", tag = "health",
    responses((status = 200, description = "The state, even if not ready", body = NodeReport), StatusErrors),
)]
pub async fn status(State(context): State<Arc<HandlerContext>>) -> Json<NodeReport> {
    Json(context.service.status())
}
