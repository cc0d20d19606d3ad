use serde_json::{Value, json};

use super::*;
use crate::domain::WallTime;
use crate::wire::rfc_3339;

#[test]
fn an_event_record_has_the_names_that_supervisors_know() {
    let authority =
        Authority { authority_remaining_ms: 1, authority_observed_unix_ms: 2, authority_observed_continuous_ms: 3 };
    let facts = Event { term: Some(7), detail: "for people".into(), ..Event::new(EventName::Leader) };
    let record = EventRecord {
        schema_version: SCHEMA_VERSION,
        sequence: 1,
        event: facts.name,
        kind: "election",
        name: "nightly-report",
        server: "http://a:7400",
        candidate_id: "worker-a",
        facts: &facts,
        authority: Some(authority),
        observed_at: rfc_3339(WallTime(1_500)),
    };
    let expected: Value = json!({
        "schema_version": 1, "sequence": 1, "event": "leader", "kind": "election", "name": "nightly-report",
        "server": "http://a:7400", "candidate_id": "worker-a", "term": 7, "authority_remaining_ms": 1,
        "authority_observed_unix_ms": 2, "authority_observed_continuous_ms": 3,
        "observed_at": "1970-01-01T00:00:01.500Z",
    });
    assert_eq!(serde_json::to_value(&record).unwrap(), expected);
}
