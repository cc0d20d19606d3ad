//! Every route of the peer listener in one table.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::post;

use super::access::{Access, require_member, require_secret};
use super::handlers::{append, forward, identity, pre_vote, snapshot, transfer, vote};
use crate::codec;
use crate::consensus::Consensus;
use crate::peer::{ClusterSecret, path};
use crate::service::RoomService;

/// The largest raft message or batch of forwarded operations: one frame and its head.
const MESSAGE_BYTES_MAX: usize = codec::PAYLOAD_BYTES_MAX + 64;

/// What all handlers share.
#[derive(Clone)]
pub struct PeerContext {
    /// Takes the raft messages.
    pub consensus: Consensus,
    /// Decides forwarded operations.
    pub service: RoomService,
    /// The secret that peers must prove. Without one, every caller is believed.
    pub secret: Option<ClusterSecret>,
    /// The names of the nodes that are to found the cluster, sorted.
    pub expected_names: Vec<String>,
}

/// Every route of the peer listener.
pub fn build_peer_router(context: PeerContext) -> Router {
    let access = Access::new(context.clone());
    let members = Router::new()
        .route(path::APPEND, post(append))
        .route(path::VOTE, post(vote))
        .route(path::PRE_VOTE, post(pre_vote))
        .route(path::TRANSFER, post(transfer))
        .route(path::FORWARD, post(forward))
        .layer(DefaultBodyLimit::max(MESSAGE_BYTES_MAX))
        .route(path::SNAPSHOT, post(snapshot))
        .layer(middleware::from_fn_with_state(access.clone(), require_member));
    Router::new()
        .route(path::IDENTITY, post(identity))
        .merge(members)
        .layer(middleware::from_fn_with_state(access, require_secret))
        .with_state(context)
}
