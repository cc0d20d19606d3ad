use super::*;

#[tokio::test(start_paused = true)]
async fn a_trace_event_comes_once_a_minute() {
    let seldom = OncePerMinute::default();
    assert!(seldom.is_due() && !seldom.is_due());
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(!seldom.is_due());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(seldom.is_due() && !seldom.is_due());
}
