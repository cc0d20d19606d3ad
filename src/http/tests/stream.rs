//! A watch stream in which nothing happens, from its beginning to its end.

use futures::StreamExt;
use tokio::time::Instant;

use super::*;

/// All pieces of a stream, each with its time of arrival.
async fn pieces_of_a_stream(settings: HttpSettings) -> Vec<(Duration, String)> {
    let (service, _folder) = founded_service();
    let router = build_router(service, settings, Arc::new(SystemRandom));
    let router = router.layer(MockConnectInfo(SocketAddr::from(([192, 0, 2, 1], 4711))));
    let asked_at = Instant::now();
    let answer = router.oneshot(request("GET", "/elections/nobody-leads/watch", &[], "")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let mut body = answer.into_body().into_data_stream();
    let mut pieces = Vec::new();
    while let Some(piece) = body.next().await {
        pieces.push((asked_at.elapsed(), String::from_utf8(piece.unwrap().to_vec()).unwrap()));
    }
    pieces.push((asked_at.elapsed(), "the end".to_owned()));
    pieces
}

#[tokio::test]
async fn a_quiet_stream_sends_comments_and_ends_after_its_duration() {
    let (stream_keep_alive, stream_duration) = (Duration::from_millis(200), Duration::from_secs(2));
    let pieces = pieces_of_a_stream(HttpSettings { stream_keep_alive, stream_duration, ..Default::default() }).await;
    let ((_, event), rest) = pieces.split_first().unwrap();
    assert!(event.starts_with("event: state\nretry: 1000\ndata: {"), "{event}");
    let ((ended_at, _), comments) = rest.split_last().unwrap();
    assert!((stream_duration..stream_duration * 3).contains(ended_at), "{ended_at:?}");
    for (number, (came_at, comment)) in (1..).zip(comments) {
        assert_eq!(comment, ":\n\n");
        assert!(*came_at >= stream_keep_alive * number, "comment {number} at {came_at:?}");
    }
    // Ten at most, and fewer on a busy machine.
    assert!((3..=10).contains(&comments.len()), "{pieces:?}");
}

#[test]
fn the_default_times_of_a_stream_are_those_of_the_contract() {
    let HttpSettings { stream_keep_alive, stream_duration, .. } = HttpSettings::default();
    assert_eq!((stream_keep_alive, stream_duration), (Duration::from_secs(15), Duration::from_secs(900)));
}
