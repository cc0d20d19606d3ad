//! How this node is: for supervisors, load balancers and people. These routes need no access token.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::Edge;
use super::error::HttpError;
use super::openapi::{HealthErrors, StatusErrors};
use crate::wire::{Health, HealthStatus, NodeReport};

const HEALTHY: Json<Health> = Json(Health { status: HealthStatus::Ok });

/// The process runs and its storage answers, whatever the other nodes do. Restart it if not.
#[utoipa::path(
    get, path = "/livez", operation_id = "livez", tag = "health",
    responses((status = 200, description = "Alive", body = Health), HealthErrors),
)]
pub async fn livez(State(edge): State<Arc<Edge>>) -> Result<Json<Health>, HttpError> {
    if edge.service.is_alive() {
        Ok(HEALTHY)
    } else {
        Err(HttpError::NotNow { reason: "the storage does not answer".to_owned() })
    }
}

/// This node can serve a linearizable request now. Send no traffic here if not.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "health",
    responses((status = 200, description = "Ready", body = Health), HealthErrors),
)]
pub async fn readyz(State(edge): State<Arc<Edge>>) -> Result<Json<Health>, HttpError> {
    edge.service.readiness().map(|()| HEALTHY).map_err(|reason| HttpError::NotNow { reason })
}

/// The same as `/readyz`.
#[utoipa::path(
    get, path = "/health", operation_id = "health", tag = "health",
    responses((status = 200, description = "Ready", body = Health), HealthErrors),
)]
pub async fn health(state: State<Arc<Edge>>) -> Result<Json<Health>, HttpError> {
    readyz(state).await
}

/// How this node and its cluster stand.
#[utoipa::path(
    get, path = "/status", operation_id = "status", tag = "health",
    responses((status = 200, description = "Always, ready or not", body = NodeReport), StatusErrors),
)]
pub async fn status(State(edge): State<Arc<Edge>>) -> Json<NodeReport> {
    Json(edge.service.status())
}
