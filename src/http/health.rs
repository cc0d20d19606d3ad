//! The health of this node, for supervisors, load balancers and people. These routes need no access token.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::context::HandlerContext;
use super::error::HttpError;
use super::openapi::{HealthErrors, StatusErrors};
use crate::service::NodeStatus;
use crate::wire::{Health, HealthStatus, Member, NodeReport};

const HEALTHY: Json<Health> = Json(Health { status: HealthStatus::Ok });

/// Whether this node works by itself, whatever the other nodes do.
///
/// Restart the node if it does not.
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
/// Send requests to another node if it cannot.
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
    Json(report(context.service.status()))
}

fn report(status: NodeStatus) -> NodeReport {
    let members = status.members.into_iter().map(|member| Member {
        name: member.name,
        node_id: member.node_id,
        url: member.client_url,
        peer: member.peer_address,
        voter: member.voter,
    });
    NodeReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: status.name,
        node_id: status.node_id,
        cluster_id: status.cluster_id,
        role: status.role.to_owned(),
        raft_leader: status.raft_leader,
        raft_term: status.raft_term,
        last_log_index: status.last_log_index,
        committed_index: status.committed_index,
        applied_index: status.applied_index,
        state_digest: status.state_digest,
        live_leases: status.live_leases,
        log_entries_written: status.log_entries_written,
        log_flushes: status.log_flushes,
        members: members.collect(),
        ready: status.readiness.is_ok(),
        reason: status.readiness.err(),
    }
}
