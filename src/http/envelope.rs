//! The parts that every response has: a request id, a trace event, and a JSON body if it is an error.

use std::any::Any;
use std::sync::Arc;
use tokio::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tracing::Instrument;

use super::context::HandlerContext;
use super::error::HttpError;
use crate::random::{Random, random_bytes};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Wraps every route. The trace event has the route's template, and no path, header or body: a client may have put a
/// secret into any of them by mistake.
pub async fn envelop(State(context): State<Arc<HandlerContext>>, request: Request, next: Next) -> Response {
    let request_id = new_request_id(&*context.random);
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let span = tracing::info_span!("request", request_id, method = %request.method(), route);
    async move {
        let started_at = Instant::now();
        let mut response = next.run(request).await;
        if let Some(error) = response.extensions_mut().remove::<HttpError>() {
            response = error.write(response, &request_id);
        }
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, HeaderValue::from_str(&request_id).expect("base64url is a valid header value"));
        // Every answer is about this moment. A cached one could name a leader that has lost its lease since.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        tracing::debug!(
            status = response.status().as_u16(),
            duration_us = u64::try_from(started_at.elapsed().as_micros()).unwrap_or(u64::MAX),
            "request answered"
        );
        response
    }
    .instrument(span)
    .await
}

/// The server chooses the id. A client that could choose it could pass its requests off as another's in the trace.
fn new_request_id(random: &dyn Random) -> String {
    format!("req_{}", URL_SAFE_NO_PAD.encode(random_bytes::<16>(random)))
}

/// Turns a panic in a handler into an error response.
pub fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let cause = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "a panic without a text".to_owned(),
    };
    HttpError::Bug { cause }.into_response()
}
