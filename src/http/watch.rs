//! A room as a stream of server-sent events.
//!
//! Events have no ids and are not replayed. Each event holds the whole state, so a reader that connects again has
//! missed nothing that still matters.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderName;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{AppendHeaders, IntoResponse, Response};
use futures::Stream;
use tokio::time::{Instant, timeout_at};

use super::context::HandlerContext;
use super::error::HttpError;
use super::extract::Room;
use super::openapi::{RoomPath, StreamEvent, WatchErrors};
use super::places::Place;
use crate::domain::{RoomId, RoomView};
use crate::listen::ClientKey;
use crate::service::RoomWatch;
use crate::wire::WatchEvent;

/// The pause before a reader connects again after its stream has ended.
const RECONNECT_AFTER: Duration = Duration::from_secs(1);

/// Tells proxies such as nginx to pass events on at once.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Watch a room: its state now, then a new event at each win, renewal, resignation and expiry.
///
/// Each event has `event: state`, `retry: 1000` and the JSON as `data`. A comment line keeps a quiet stream
/// alive. A stream ends after a while, usually 15 minutes: connect again for the next one.
#[utoipa::path(
    get, path = "/elections/{election_id}/watch", operation_id = "watch", tag = "elections",
    security((), ("access_token" = [])),
    params(RoomPath),
    responses(
        (status = 200, description = "The stream. The schema is that of one event", body = inline(StreamEvent),
            content_type = "text/event-stream",
            headers(("X-Accel-Buffering" = String, description = "Always `no`"))),
        WatchErrors,
    ),
)]
pub async fn watch(
    State(context): State<Arc<HandlerContext>>,
    client: ClientKey,
    Room(room): Room,
    _place: Place,
) -> Result<Response, HttpError> {
    let place = context.streams.take_for_stream(client)?;
    let watch = context.service.watch(&room);
    let ends_at = Instant::now() + context.settings.stream_duration;
    let keep_alive = KeepAlive::new().interval(context.settings.stream_keep_alive);
    let stream = Sse::new(events(room, watch, ends_at, place)).keep_alive(keep_alive);
    Ok((AppendHeaders([(X_ACCEL_BUFFERING, "no")]), stream).into_response())
}

/// The place becomes free when the stream is dropped: at its end, or when the client has gone.
fn events(
    room: RoomId,
    watch: RoomWatch,
    ends_at: Instant,
    place: Place,
) -> impl Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold((room, watch, place), move |(room, mut watch, place)| async move {
        let view = timeout_at(ends_at, watch.next()).await.ok().flatten()?;
        Some((Ok(event(&room, &view)), (room, watch, place)))
    })
}

fn event(room: &RoomId, view: &RoomView) -> Event {
    let json =
        serde_json::to_string(&WatchEvent::new(room.clone(), view)).expect("every wire type can be written as JSON");
    Event::default().event("state").retry(RECONNECT_AFTER).data(json)
}

#[cfg(test)]
mod tests;
