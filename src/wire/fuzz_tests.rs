//! Random bytes as requests and as answers. See `codec::fuzz_tests`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::codec::fuzz_tests::{bounded, try_on};

fn requests() -> Vec<Vec<u8>> {
    let token = "A".repeat(43);
    [
        json!({"candidate_id": "worker-a", "ttl_seconds": 30, "metadata": "\u{1f5f3}\n", "wait_seconds": 60}),
        json!({"candidate_id": "a:b@c.d", "ttl_seconds": 5.0, "unknown": [{"deep": [null, true, 1e3]}]}),
        json!({"leader_token": token, "ttl_seconds": 300, "metadata": ""}),
        json!({"leader_token": token}),
    ]
    .map(|request| request.to_string().into_bytes())
    .into()
}

/// If damaged bytes are read as a request, the request can be written as the client library does, and read again.
fn try_request<T: Serialize>(read: fn(&[u8]) -> Result<T, InvalidRequest>) {
    try_on(requests(), |body| match bounded(body.len(), || read(body)) {
        Ok(request) => {
            let written = serde_json::to_vec(&request).unwrap();
            let again = serde_json::to_vec(&read(&written).unwrap()).unwrap();
            assert_eq!(String::from_utf8(again), String::from_utf8(written));
        }
        Err(error) => assert!(error.to_string().is_ascii() && error.to_string().len() < 200, "{error}"),
    });
}

#[test]
fn requests_are_read_or_rejected() {
    try_request(CampaignRequest::from_json);
    try_request(RenewRequest::from_json);
    try_request(ResignRequest::from_json);
}

/// If damaged bytes are read as an answer, the answer can be written, and read again as the same one.
fn try_answer<T: Serialize + DeserializeOwned>(answer: &serde_json::Value) {
    assert!(serde_json::from_value::<T>(answer.clone()).is_ok(), "{answer} is an answer");
    try_on(vec![answer.to_string().into_bytes()], |body| {
        if let Ok(read) = bounded(body.len(), || serde_json::from_slice::<T>(body)) {
            let written = serde_json::to_value(&read).unwrap();
            let again = serde_json::to_value(serde_json::from_value::<T>(written.clone()).unwrap()).unwrap();
            assert_eq!(again, written);
        }
    });
}

#[test]
fn answers_are_read_or_rejected() {
    let leader =
        json!({"candidate_id": "worker-a", "metadata": "m", "term": 1842, "expires_at": "2026-11-29T12:00:30.123Z"});
    let room = "nightly-report";
    try_answer::<RoomCreated>(
        &json!({"election_id": room, "campaign_path": "/c", "status_path": "/s", "watch_path": "/w"}),
    );
    try_answer::<CampaignResponse>(&json!({"status": "leader", "election_id": room, "leader": leader,
        "leader_token": "A".repeat(43), "renew_after_ms": 15_000, "valid_for_ms": 30_000}));
    try_answer::<CampaignResponse>(
        &json!({"status": "follower", "election_id": room, "leader": leader, "retry_after_ms": 29_876}),
    );
    try_answer::<Resigned>(&json!({"election_id": room, "status": "vacant", "previous_term": 1842}));
    try_answer::<RoomStatus>(&json!({"election_id": room, "status": "leader", "leader": leader, "retry_after_ms": 1}));
    try_answer::<WatchEvent>(&json!({"schema_version": 1, "election_id": room, "status": "vacant", "leader": null,
        "retry_after_ms": 0, "observed_at": "2026-11-29T12:00:16.123Z"}));
    try_answer::<ErrorBody>(&json!({"error": "Unavailable", "code": "unavailable", "details": "d",
        "retry_after_ms": 1_000, "request_id": "req_1"}));
    try_answer::<NodeReport>(&json!({"version": "0.1.0", "name": "n1", "node_id": 7, "cluster_id": null,
        "role": "raft_leader", "raft_leader": "n1", "raft_term": 3, "last_log_index": 9, "committed_index": 9,
        "applied_index": 9, "state_digest": "00", "live_leases": 1, "log_entries_written": 9, "log_flushes": 9,
        "members": [{"name": "n1", "node_id": 7, "url": "http://a:7400", "peer": "a:7401", "voter": true}],
        "ready": false, "reason": "why"}));
}
