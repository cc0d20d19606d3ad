use super::*;

#[tokio::test(start_paused = true)]
async fn an_event_goes_through_once_a_minute() {
    let limit = OncePerMinute::default();
    assert!(limit.is_due() && !limit.is_due());
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(!limit.is_due());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(limit.is_due() && !limit.is_due());
}
