//! Every route of the peer listener in one table.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::post;

use super::access::{Access, require_member, require_secret};
use super::context::PeerContext;
use super::handlers::{append, forward, identity, pre_vote, snapshot, transfer, vote};
use crate::codec;
use crate::peer::path;

/// The largest raft message or batch of forwarded operations: one frame and its head.
const MESSAGE_BYTES_MAX: usize = codec::PAYLOAD_BYTES_MAX + 64;

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
