use super::super::holder_clock::SystemHolderClock;
use super::*;

#[test]
fn every_node_gets_a_try_before_the_deadline() {
    let caller = Caller {
        http: reqwest::Client::new(),
        urls: ["http://a", "http://b", "http://c"].map(String::from).to_vec(),
        current: AtomicUsize::new(0),
        access_token: None,
        exposed_host: None,
        request_deadline: Duration::from_secs(10),
        clock: Arc::new(SystemHolderClock),
    };
    let mut call = Call::get("/".into());
    assert_eq!(caller.time_for_one_try(Duration::from_secs(4), &call), Duration::from_secs(1));
    assert_eq!(caller.time_for_one_try(Duration::from_secs(60), &call), TRY_MAX);
    assert_eq!(caller.time_for_one_try(Duration::ZERO, &call), TRY_MIN);
    call.long_poll = Duration::from_secs(10);
    assert_eq!(caller.time_for_one_try(Duration::from_secs(14), &call), Duration::from_secs(11));
}
