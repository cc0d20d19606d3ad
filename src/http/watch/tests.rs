use axum::body::to_bytes;

use super::*;
use crate::domain::LogTime;

#[tokio::test]
async fn an_event_has_the_format_of_the_contract() {
    let view = RoomView { lease: None, log_time: LogTime(7), wall_anchor: None };
    let event = event(&RoomId::new("nightly-report").unwrap(), &view);
    let response = Sse::new(futures::stream::iter([Ok::<_, Infallible>(event)])).into_response();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = to_bytes(response.into_body(), 1024).await.unwrap();
    assert_eq!(
        std::str::from_utf8(&body).unwrap(),
        "event: state\nretry: 1000\ndata: {\"schema_version\":1,\"election_id\":\"nightly-report\",\
         \"status\":\"vacant\",\"leader\":null,\"retry_after_ms\":0,\
         \"observed_at\":\"1970-01-01T00:00:00.000Z\"}\n\n"
    );
}
