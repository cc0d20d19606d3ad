//! The peer listener: raft messages and forwarded questions, for nodes that prove the cluster secret.
//!
//! Who doesn't is refused before a byte of the body is read.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::{StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::codec;
use crate::consensus::{Consensus, RaftAnswer, Unanswered};
use crate::listen::OncePerMinute;
use crate::peer::{ClusterSecret, ForwardedAsk, PROTOCOL, PeerIdentity, SnapshotHead, header, path, read_snapshot};
use crate::service::RoomService;
use crate::storage::IncomingSnapshot;

/// The most that a raft message or a batch of questions may have: a frame and its head.
const MESSAGE_BYTES_MAX: usize = codec::PAYLOAD_BYTES_MAX + 64;

/// What the handlers need.
#[derive(Clone)]
pub struct PeerContext {
    /// Agreement.
    pub consensus: Consensus,
    /// Decides forwarded questions.
    pub service: RoomService,
    /// What peers must prove, if anything.
    pub secret: Option<ClusterSecret>,
    /// The names of the cluster to be founded, sorted.
    pub expected_names: Vec<String>,
}

/// A refusal, in plain words for another node's trace.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

/// Traces of what is refused, each let through now and then: whoever is refused may ask again at once, for ever.
#[derive(Default)]
struct Refusals {
    strangers: OncePerMinute,
    other_clusters: OncePerMinute,
    not_stored: OncePerMinute,
}

/// What decides who may ask.
type Door = (PeerContext, Arc<Refusals>);

/// Every route of the peer listener.
pub fn build_peer_router(context: PeerContext) -> Router {
    let door: Door = (context.clone(), Arc::default());
    let members = Router::new()
        .route(path::APPEND, post(append))
        .route(path::VOTE, post(vote))
        .route(path::PRE_VOTE, post(pre_vote))
        .route(path::TRANSFER, post(transfer))
        .route(path::FORWARD, post(forward))
        .layer(DefaultBodyLimit::max(MESSAGE_BYTES_MAX))
        .route(path::SNAPSHOT, post(snapshot))
        .layer(middleware::from_fn_with_state(door.clone(), require_member));
    Router::new()
        .route(path::IDENTITY, post(identity))
        .merge(members)
        .layer(middleware::from_fn_with_state(door, require_secret))
        .with_state(context)
}

async fn require_secret(
    State((context, refusals)): State<Door>,
    request: Request,
    next: Next,
) -> Result<Response, Refused> {
    if let Some(secret) = &context.secret {
        let given = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
        if !secret.is_proven_by(given) {
            if refusals.strangers.is_due() {
                // Not the path, which may be anything, of any length.
                let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
                let caller = caller(&request);
                tracing::warn!(route, caller, "a peer request without the right cluster secret was refused");
            }
            return Err(Refused(StatusCode::UNAUTHORIZED, "the cluster secret is missing or wrong".into()));
        }
    }
    let protocol: u32 = number(request.headers(), header::PROTOCOL)?;
    if protocol != PROTOCOL {
        let reason = format!("peer protocol {protocol} is not this node's {PROTOCOL}");
        return Err(Refused(StatusCode::BAD_REQUEST, reason));
    }
    Ok(next.run(request).await)
}

async fn require_member(
    State((context, refusals)): State<Door>,
    request: Request,
    next: Next,
) -> Result<Response, Refused> {
    let headers = request.headers();
    let local = context.consensus.local();
    let to: u64 = number(headers, header::TO)?;
    if to != local.node_id() {
        let reason = format!("meant for node {to}, this is node {}", local.node_id());
        return Err(Refused(StatusCode::MISDIRECTED_REQUEST, reason));
    }
    let cluster_id: Uuid = text(headers, header::CLUSTER)?
        .parse()
        .map_err(|_| Refused(StatusCode::BAD_REQUEST, "the cluster id is not a UUID".into()))?;
    match local.cluster_id() {
        Some(own) if own != cluster_id => {
            if refusals.other_clusters.is_due() {
                let caller = caller(&request);
                tracing::warn!(%own, other = %cluster_id, caller, "a request from another cluster was refused");
            }
            let reason = format!("from cluster {cluster_id}, this node belongs to {own}");
            return Err(Refused(StatusCode::MISDIRECTED_REQUEST, reason));
        }
        Some(_) => {}
        // Only who asked this empty node for its identity knows its id; that one founds the cluster.
        None => local.adopt_cluster(cluster_id).map_err(|error| {
            if refusals.not_stored.is_due() {
                tracing::error!(%error, "the cluster id cannot be stored");
            }
            Refused(StatusCode::SERVICE_UNAVAILABLE, "the cluster id cannot be stored".into())
        })?,
    }
    Ok(next.run(request).await)
}

/// Where a request comes from, for people.
fn caller(request: &Request) -> Option<String> {
    let ConnectInfo(address) = request.extensions().get::<ConnectInfo<SocketAddr>>()?;
    Some(address.to_string())
}

async fn identity(State(context): State<PeerContext>) -> Result<Response, Refused> {
    let local = context.consensus.local();
    framed(&PeerIdentity {
        name: local.node().name.clone(),
        node_id: local.node_id(),
        cluster_id: local.cluster_id(),
        is_empty: !context.consensus.has_log(),
        expected_names: context.expected_names.clone(),
        client_url: local.node().client_url.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
    })
}

async fn append(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Refused> {
    answer(context.consensus.receive_append(read(&body)?).await)
}

async fn vote(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Refused> {
    answer(context.consensus.receive_vote(read(&body)?).await)
}

async fn pre_vote(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Refused> {
    answer(context.consensus.receive_pre_vote(read(&body)?).await)
}

async fn transfer(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Refused> {
    answer(context.consensus.receive_transfer(read(&body)?).await)
}

async fn forward(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Refused> {
    let asks: Vec<ForwardedAsk> = read(&body)?;
    framed(&context.service.decide_for_peer(asks).await)
}

async fn snapshot(State(context): State<PeerContext>, body: Body) -> Result<Response, Refused> {
    let incoming = context.consensus.begin_snapshot().await.map_err(|error| broken(&error))?;
    let (head, incoming) = receive_snapshot(body, incoming).await?;
    answer(context.consensus.receive_snapshot(head, incoming).await)
}

fn broken(error: &dyn std::fmt::Display) -> Refused {
    Refused(StatusCode::BAD_REQUEST, format!("snapshot: {error}"))
}

/// Writes what arrives after the head into the file.
async fn receive_snapshot(
    body: Body,
    mut incoming: IncomingSnapshot,
) -> Result<(SnapshotHead, IncomingSnapshot), Refused> {
    let chunks = body.into_data_stream().map_err(std::io::Error::other);
    let (head, mut file) = read_snapshot(chunks).await.map_err(|error| broken(&error))?;
    while let Some(chunk) = file.next().await {
        let chunk = chunk.map_err(|error| broken(&error))?;
        incoming.write(chunk).await.map_err(|error| broken(&error))?;
    }
    Ok((head, incoming))
}

fn answer<T: Serialize>(answer: RaftAnswer<T>) -> Result<Response, Refused> {
    match answer {
        Ok(answer) => framed(&answer),
        Err(error @ Unanswered::SnapshotRefused(_)) => Err(Refused(StatusCode::BAD_REQUEST, error.to_string())),
        Err(error) => Err(Refused(StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
    }
}

fn framed<T: Serialize>(value: &T) -> Result<Response, Refused> {
    match codec::encode(value) {
        Ok(bytes) => Ok(bytes.into_response()),
        Err(error) => Err(Refused(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    codec::decode(body).map_err(|error| Refused(StatusCode::BAD_REQUEST, error.to_string()))
}

fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, Refused> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.ok_or_else(|| Refused(StatusCode::BAD_REQUEST, format!("the header {name} is missing")))
}

fn number<T: std::str::FromStr>(headers: &HeaderMap, name: &'static str) -> Result<T, Refused> {
    text(headers, name)?
        .parse()
        .map_err(|_| Refused(StatusCode::BAD_REQUEST, format!("the header {name} is no number")))
}

#[cfg(test)]
mod fuzz_tests;
