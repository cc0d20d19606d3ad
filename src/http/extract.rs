//! Reads what handlers need from a request, or answers with an error.

use std::sync::Arc;

use axum::RequestExt;
use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use utoipa::ToSchema;

use super::context::HandlerContext;
use super::error::HttpError;
use super::places::{Place, Places};
use crate::domain::RoomId;
use crate::listen::ClientKey;
use crate::service::{Consistency, IdempotencyKey};

/// The room in the path.
pub struct Room(pub RoomId);

impl FromRequestParts<Arc<HandlerContext>> for Room {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, context: &Arc<HandlerContext>) -> Result<Self, HttpError> {
        let Path(text) = Path::<String>::from_request_parts(parts, context)
            .await
            .map_err(|_| HttpError::invalid_input("the election_id in the path must be percent-encoded UTF-8"))?;
        Ok(Self(RoomId::new(&text)?))
    }
}

/// The query `?consistency=`.
pub struct Freshness(pub Consistency);

#[derive(Deserialize)]
struct FreshnessQuery {
    #[serde(default)]
    consistency: ConsistencyWord,
}

/// The values of the query.
#[derive(Deserialize, Default, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsistencyWord {
    /// True at a moment after the request was sent.
    #[default]
    Linearizable,
    /// The state as this node knows it, which may be out of date.
    Local,
}

impl FromRequestParts<Arc<HandlerContext>> for Freshness {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, context: &Arc<HandlerContext>) -> Result<Self, HttpError> {
        let Query(query) = Query::<FreshnessQuery>::from_request_parts(parts, context).await.map_err(|_| {
            HttpError::invalid_input("consistency must be linearizable or local, and be given only once")
        })?;
        Ok(Self(match query.consistency {
            ConsistencyWord::Linearizable => Consistency::Linearizable,
            ConsistencyWord::Local => Consistency::Local,
        }))
    }
}

/// The `Idempotency-Key` header.
pub struct Idempotency(pub Option<IdempotencyKey>);

impl FromRequestParts<Arc<HandlerContext>> for Idempotency {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HandlerContext>) -> Result<Self, HttpError> {
        let mut values = parts.headers.get_all("idempotency-key").iter();
        let key = values.next().map(|value| IdempotencyKey::from_header(value.as_bytes())).transpose()?;
        match values.next() {
            None => Ok(Self(key)),
            Some(_) => Err(HttpError::invalid_input("Idempotency-Key must be given only once")),
        }
    }
}

/// Proof that the client had some of its budget left. A request is counted only if its handler extracts this.
pub struct Admitted;

impl FromRequestParts<Arc<HandlerContext>> for Admitted {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, context: &Arc<HandlerContext>) -> Result<Self, HttpError> {
        let client = ClientKey::from_request_parts(parts, context).await?;
        context.admission.check(client).map(|()| Admitted)
    }
}

impl FromRequestParts<Arc<HandlerContext>> for Place {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, context: &Arc<HandlerContext>) -> Result<Self, HttpError> {
        let client = ClientKey::from_request_parts(parts, context).await?;
        Places::of_route(&parts.extensions)?.take_for_request(client)
    }
}

/// A complete body and the request's place. The body is within the limit, and its content type is JSON. The place is
/// taken after the body has arrived. An empty body is passed on: the reader of its fields says what is missing.
pub struct JsonBytes(pub Bytes, pub Place);

impl FromRequest<Arc<HandlerContext>> for JsonBytes {
    type Rejection = HttpError;

    async fn from_request(mut request: Request, context: &Arc<HandlerContext>) -> Result<Self, HttpError> {
        let body_bytes_max = context.settings.body_bytes_max;
        // If the body announces that it is too large, it is not read.
        if request.body().size_hint().lower() > body_bytes_max as u64 {
            return Err(HttpError::BodyTooLarge { body_bytes_max });
        }
        let is_json = is_json(request.headers());
        let places = Places::of_route(request.extensions())?;
        let client: ClientKey = request.extract_parts_with_state(context).await?;
        let body = tokio::time::timeout(context.settings.body_deadline, request.extract::<Bytes, _>())
            .await
            .map_err(|_| {
                let within = context.settings.body_deadline;
                HttpError::invalid_input(format!(
                    "the body must arrive in time: within {within:?} of the request's head"
                ))
            })?
            .map_err(|rejection| match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => HttpError::BodyTooLarge { body_bytes_max },
                _ => HttpError::invalid_input("the body ended before it was complete; send the request again"),
            })?;
        if !is_json && !body.is_empty() {
            return Err(HttpError::NotJson);
        }
        Ok(Self(body, places.take_for_request(client)?))
    }
}

/// Whether the content type is `application/json` or ends with `+json`. Parameters are ignored.
fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = text.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}
