//! One handler for each route: it reads the body, calls consensus or the service, and writes the answer.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::PeerContext;
use super::rejected::Rejected;
use crate::codec;
use crate::consensus::{RaftAnswer, Unanswered};
use crate::peer::{ForwardedOperation, PeerIdentity, SnapshotHead, read_snapshot};
use crate::storage::IncomingSnapshot;

pub async fn identity(State(context): State<PeerContext>) -> Result<Response, Rejected> {
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

pub async fn append(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Rejected> {
    answer(context.consensus.inbox().append(read(&body)?).await)
}

pub async fn vote(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Rejected> {
    answer(context.consensus.inbox().vote(read(&body)?).await)
}

pub async fn pre_vote(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Rejected> {
    answer(context.consensus.inbox().pre_vote(read(&body)?).await)
}

pub async fn transfer(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Rejected> {
    answer(context.consensus.inbox().transfer(read(&body)?).await)
}

pub async fn forward(State(context): State<PeerContext>, body: Bytes) -> Result<Response, Rejected> {
    let operations: Vec<ForwardedOperation> = read(&body)?;
    framed(&context.decider.decide_for_peer(operations).await)
}

pub async fn snapshot(State(context): State<PeerContext>, body: Body) -> Result<Response, Rejected> {
    let incoming = context.consensus.inbox().begin_snapshot().await.map_err(|error| broken(&error))?;
    let (head, incoming) = write_to_file(body, incoming).await?;
    answer(context.consensus.inbox().install_snapshot(head, incoming).await)
}

fn broken(error: &dyn std::fmt::Display) -> Rejected {
    Rejected(StatusCode::BAD_REQUEST, format!("snapshot: {error}"))
}

/// Writes the snapshot's bytes to its file as they arrive. Returns the snapshot's head and the file.
async fn write_to_file(
    body: Body,
    mut incoming: IncomingSnapshot,
) -> Result<(SnapshotHead, IncomingSnapshot), Rejected> {
    let chunks = body.into_data_stream().map_err(std::io::Error::other);
    let (head, mut file) = read_snapshot(chunks).await.map_err(|error| broken(&error))?;
    while let Some(chunk) = file.next().await {
        let chunk = chunk.map_err(|error| broken(&error))?;
        incoming.write(chunk).await.map_err(|error| broken(&error))?;
    }
    Ok((head, incoming))
}

fn answer<T: Serialize>(answer: RaftAnswer<T>) -> Result<Response, Rejected> {
    match answer {
        Ok(answer) => framed(&answer),
        Err(error @ (Unanswered::SnapshotRejected(_) | Unanswered::Untrue(_))) => {
            Err(Rejected(StatusCode::BAD_REQUEST, error.to_string()))
        }
        Err(error) => Err(Rejected(StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
    }
}

fn framed<T: Serialize>(value: &T) -> Result<Response, Rejected> {
    match codec::encode(value) {
        Ok(bytes) => Ok(bytes.into_response()),
        Err(error) => Err(Rejected(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Rejected> {
    codec::decode(body).map_err(|error| Rejected(StatusCode::BAD_REQUEST, error.to_string()))
}

#[cfg(test)]
mod tests;
