use super::*;

const EVENT: &str = "event: state\nretry: 1000\ndata: {\"schema_version\":1,\"election_id\":\"nightly-report\",\
    \"status\":\"vacant\",\"leader\":null,\"retry_after_ms\":0,\"observed_at\":\"1970-01-01T00:00:00.000Z\"}\n\n";

#[test]
fn events_are_read_wherever_the_chunks_are_cut() {
    let stream = format!("{EVENT}:\n\n: a comment\n\ndata: not JSON\n\n{}", EVENT.replace('\n', "\r\n"));
    for size in [1, 7, stream.len()] {
        let mut events = Events::default();
        for chunk in stream.as_bytes().chunks(size) {
            events.read(chunk).unwrap();
        }
        assert_eq!(events.ready.len(), 2, "in chunks of {size} bytes");
        assert!(events.ready.iter().all(|event| event.leader.is_none()));
    }
}

#[test]
fn a_line_that_never_ends_is_rejected() {
    let mut events = Events::default();
    assert!(events.read(&vec![b'x'; EVENT_BYTES_MAX + 1]).is_none());
}
