//! Lets a peer request pass only if it proves the cluster secret, and is for this node and from its cluster.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use uuid::Uuid;

use super::context::PeerContext;
use super::rejected::Rejected;
use crate::listen::OncePerMinute;
use crate::peer::{PROTOCOL, header};

/// The values that the checks need.
#[derive(Clone)]
pub struct Access {
    context: PeerContext,
    traces: Arc<RejectionTraces>,
}

impl Access {
    /// The checks for one router.
    pub fn new(context: PeerContext) -> Self {
        Self { context, traces: Arc::default() }
    }
}

/// One limit for each kind of rejection, because a rejected caller can retry at once, again and again.
#[derive(Default)]
struct RejectionTraces {
    wrong_secret: OncePerMinute,
    other_cluster: OncePerMinute,
    not_stored: OncePerMinute,
}

/// Lets a request pass if it proves the cluster secret and speaks this node's protocol.
pub async fn require_secret(State(access): State<Access>, request: Request, next: Next) -> Result<Response, Rejected> {
    if let Some(secret) = &access.context.secret {
        let given = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
        if !secret.is_proven_by(given) {
            if access.traces.wrong_secret.is_due() {
                // The trace names the route, not the path, because a caller chooses the path's content and length.
                let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
                let caller = caller(&request);
                tracing::warn!(route, caller, "a peer request without the right cluster secret was rejected");
            }
            return Err(Rejected(StatusCode::UNAUTHORIZED, "the cluster secret is missing or wrong".into()));
        }
    }
    let protocol: u32 = number(request.headers(), header::PROTOCOL)?;
    if protocol != PROTOCOL {
        let reason = format!("peer protocol {protocol} is not this node's {PROTOCOL}");
        return Err(Rejected(StatusCode::BAD_REQUEST, reason));
    }
    Ok(next.run(request).await)
}

/// Lets a request pass if it is for this node and from this node's cluster.
pub async fn require_member(State(access): State<Access>, request: Request, next: Next) -> Result<Response, Rejected> {
    let headers = request.headers();
    let local = access.context.consensus.local();
    let to: u64 = number(headers, header::TO)?;
    if to != local.node_id() {
        let reason = format!("the request is for node {to}; this is node {}", local.node_id());
        return Err(Rejected(StatusCode::MISDIRECTED_REQUEST, reason));
    }
    let cluster_id: Uuid = text(headers, header::CLUSTER)?
        .parse()
        .map_err(|_| Rejected(StatusCode::BAD_REQUEST, "the cluster id is not a UUID".into()))?;
    match local.cluster_id() {
        Some(own) if own != cluster_id => {
            if access.traces.other_cluster.is_due() {
                let caller = caller(&request);
                tracing::warn!(%own, other = %cluster_id, caller, "a request from another cluster was rejected");
            }
            let reason = format!("the request is from cluster {cluster_id}; this node belongs to {own}");
            return Err(Rejected(StatusCode::MISDIRECTED_REQUEST, reason));
        }
        Some(_) => {}
        // This node is empty. A caller knows its id only by asking for its identity, and then founds a cluster with it.
        None => local.adopt_cluster(cluster_id).map_err(|error| {
            if access.traces.not_stored.is_due() {
                tracing::error!(%error, "the cluster id cannot be stored");
            }
            Rejected(StatusCode::SERVICE_UNAVAILABLE, "the cluster id cannot be stored".into())
        })?,
    }
    Ok(next.run(request).await)
}

/// The address that a request came from, for the trace.
fn caller(request: &Request) -> Option<String> {
    let ConnectInfo(address) = request.extensions().get::<ConnectInfo<SocketAddr>>()?;
    Some(address.to_string())
}

fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, Rejected> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.ok_or_else(|| Rejected(StatusCode::BAD_REQUEST, format!("the header {name} is missing")))
}

fn number<T: FromStr>(headers: &HeaderMap, name: &'static str) -> Result<T, Rejected> {
    let number = text(headers, name)?.parse();
    number.map_err(|_| Rejected(StatusCode::BAD_REQUEST, format!("the header {name} must be a whole number")))
}

#[cfg(test)]
mod fuzz_tests;
