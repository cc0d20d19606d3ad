//! The routes of rooms: create, campaign, renew, resign, view.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use super::context::HandlerContext;
use super::error::HttpError;
use super::extract::{Admitted, Freshness, Idempotency, JsonBytes, Room};
use super::openapi::{
    CampaignErrors, CampaignHeaders, CreateErrors, RenewErrors, ResignErrors, RoomPath, ViewErrors, ViewQuery,
};
use super::places::Place;
use crate::domain::RoomId;
use crate::random::random_bytes;
use crate::service::{self, CampaignAnswer, Holding, LeaseSecret};
use crate::wire::{
    CampaignRequest, CampaignResponse, Follower, LeaderToken, RenewRequest, ResignRequest, Resigned, ResignedStatus,
    RoomCreated, RoomStatus, Won,
};

/// The name of the node that decided.
const X_QUORATE_NODE: HeaderName = HeaderName::from_static("x-quorate-node");

/// Create a room whose id nobody can guess.
///
/// This stores nothing: any valid id can be campaigned for. A body is ignored.
#[utoipa::path(
    post, path = "/elections", operation_id = "createElection", tag = "elections",
    security((), ("access_token" = [])),
    responses(
        (status = 201, description = "The id and the paths of the new room", body = RoomCreated,
            headers(("Location" = String, description = "The path of the room's status"))),
        CreateErrors,
    ),
)]
pub async fn create(
    State(context): State<Arc<HandlerContext>>,
    _: Admitted,
    _place: Place,
) -> Result<Response, HttpError> {
    let room = RoomId::new(&URL_SAFE_NO_PAD.encode(random_bytes::<24>(&*context.random)))?;
    let created = RoomCreated::new(room);
    let location = [(header::LOCATION, created.status_path.clone())];
    Ok((StatusCode::CREATED, AppendHeaders(location), Json(created)).into_response())
}

/// Try to lead.
///
/// The answer is 200 in both cases: if the caller leads, and if another candidate does.
#[utoipa::path(
    post, path = "/elections/{election_id}/campaign", operation_id = "campaign", tag = "elections",
    security((), ("access_token" = [])),
    params(RoomPath, CampaignHeaders),
    request_body = CampaignRequest,
    responses(
        (status = 200, description = "The caller leads, or another candidate does", body = CampaignResponse,
            headers(("X-Quorate-Node" = String, description = "The name of the node that decided"))),
        CampaignErrors,
    ),
)]
pub async fn campaign(
    State(context): State<Arc<HandlerContext>>,
    _: Admitted,
    Room(room): Room,
    Idempotency(idempotency_key): Idempotency,
    JsonBytes(body, _place): JsonBytes,
) -> Result<Response, HttpError> {
    let request = CampaignRequest::from_json(&body)?;
    let request = service::CampaignRequest {
        room: room.clone(),
        lease_duration: request.lease_duration(),
        wait: request.wait(),
        contender: request.candidate_id,
        metadata: request.metadata,
        idempotency_key,
    };
    let decided = context.service.campaign(request).await?;
    let response = match decided.answer {
        CampaignAnswer::Won(holding) => CampaignResponse::Won(won(room, &holding)?),
        CampaignAnswer::Follower(view) => CampaignResponse::Follower(Follower::new(room, &view)),
    };
    Ok(answer(&decided.decided_by, response))
}

/// Renew the lease, to go on leading.
#[utoipa::path(
    post, path = "/elections/{election_id}/renew", operation_id = "renew", tag = "elections",
    security((), ("access_token" = [])),
    params(RoomPath),
    request_body = RenewRequest,
    responses(
        (status = 200, description = "The lease is renewed. A renewal never makes it shorter", body = Won,
            headers(("X-Quorate-Node" = String, description = "The name of the node that decided"))),
        RenewErrors,
    ),
)]
pub async fn renew(
    State(context): State<Arc<HandlerContext>>,
    Room(room): Room,
    JsonBytes(body, _place): JsonBytes,
) -> Result<Response, HttpError> {
    let request = RenewRequest::from_json(&body)?;
    let secret = LeaseSecret::from_text(request.leader_token.expose_text())?;
    let decided = context.service.renew(room.clone(), secret, request.ttl_seconds, request.metadata).await?;
    Ok(answer(&decided.decided_by, won(room, &decided.answer)?))
}

/// Resign: stop leading. The room is vacant before the answer is sent.
#[utoipa::path(
    post, path = "/elections/{election_id}/resign", operation_id = "resign", tag = "elections",
    security((), ("access_token" = [])),
    params(RoomPath),
    request_body = ResignRequest,
    responses(
        (status = 200, description = "The room is vacant", body = Resigned,
            headers(("X-Quorate-Node" = String, description = "The name of the node that decided"))),
        ResignErrors,
    ),
)]
pub async fn resign(
    State(context): State<Arc<HandlerContext>>,
    Room(room): Room,
    JsonBytes(body, _place): JsonBytes,
) -> Result<Response, HttpError> {
    let request = ResignRequest::from_json(&body)?;
    let secret = LeaseSecret::from_text(request.leader_token.expose_text())?;
    let decided = context.service.resign(room.clone(), &secret).await?;
    let resigned = Resigned { election_id: room, status: ResignedStatus::Vacant, previous_term: decided.answer };
    Ok(answer(&decided.decided_by, resigned))
}

/// Read who leads.
#[utoipa::path(
    get, path = "/elections/{election_id}", operation_id = "getElection", tag = "elections",
    security((), ("access_token" = [])),
    params(RoomPath, ViewQuery),
    responses(
        (status = 200, description = "The state of the room", body = RoomStatus,
            headers(("X-Quorate-Node" = String, description = "The name of the node that decided"))),
        ViewErrors,
    ),
)]
pub async fn view(
    State(context): State<Arc<HandlerContext>>,
    Room(room): Room,
    Freshness(consistency): Freshness,
    _place: Place,
) -> Result<Response, HttpError> {
    let decided = context.service.view(&room, consistency).await?;
    Ok(answer(&decided.decided_by, RoomStatus::new(room, &decided.answer)))
}

fn won(room: RoomId, holding: &Holding) -> Result<Won, HttpError> {
    let leader_token = LeaderToken::new(holding.secret.expose_text());
    Won::new(room, &holding.view, leader_token, holding.valid_for).ok_or_else(|| HttpError::Bug {
        cause: "a campaign or renewal succeeded, but nobody holds the room".to_owned(),
    })
}

/// A response that names the node which decided. If that name is not a valid header value, for example because of an
/// umlaut, it is left out.
fn answer(decided_by: &str, body: impl Serialize) -> Response {
    let node = HeaderValue::from_str(decided_by).ok().map(|name| (X_QUORATE_NODE, name));
    (AppendHeaders(node), Json(body)).into_response()
}
