//! One example for each object of the document.

use serde_json::{Value, json};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{OpenApi, RefOr};

/// Adds the examples to the document's schemas.
pub fn add_examples(document: &mut OpenApi) {
    let schemas = &mut document.components.as_mut().expect("the document has components").schemas;
    for (name, example) in examples() {
        let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(name) else {
            panic!("{name} is an object of the document");
        };
        object.examples = vec![example];
    }
}

/// The examples, each with the name of its schema.
fn examples() -> Vec<(&'static str, Value)> {
    let room = "nightly-report";
    let token = "mJ9r1cQ5bYb6m3lVgq0w3l2f9Jc0a1s5d8h7k4n2x6E";
    let metadata = "https://worker-a.internal:8443";
    let leader = json!({
        "candidate_id": "worker-a", "metadata": metadata, "term": 1842, "expires_at": "2026-11-29T12:00:30.123Z",
    });
    let member = json!({
        "name": "node-1", "node_id": 1, "url": "http://10.0.0.1:7400", "peer": "10.0.0.1:7401", "voter": true,
    });
    vec![
        (
            "CampaignRequest",
            json!({"candidate_id": "worker-a", "ttl_seconds": 30, "metadata": metadata, "wait_seconds": 0}),
        ),
        ("RenewRequest", json!({"leader_token": token})),
        ("ResignRequest", json!({"leader_token": token})),
        (
            "RoomCreated",
            json!({
                "election_id": "k3v9Qe0Jx8mB2nC7pL5rT1wYzA4sD6fG",
                "campaign_path": "/elections/k3v9Qe0Jx8mB2nC7pL5rT1wYzA4sD6fG/campaign",
                "status_path": "/elections/k3v9Qe0Jx8mB2nC7pL5rT1wYzA4sD6fG",
                "watch_path": "/elections/k3v9Qe0Jx8mB2nC7pL5rT1wYzA4sD6fG/watch",
            }),
        ),
        ("Leader", leader.clone()),
        (
            "Won",
            json!({
                "status": "leader", "election_id": room, "leader": leader, "leader_token": token,
                "renew_after_ms": 15_000, "valid_for_ms": 30_000,
            }),
        ),
        ("Follower", json!({"status": "follower", "election_id": room, "leader": leader, "retry_after_ms": 29_876})),
        ("Resigned", json!({"election_id": room, "status": "vacant", "previous_term": 1842})),
        ("RoomStatus", json!({"election_id": room, "status": "leader", "leader": leader, "retry_after_ms": 29_876})),
        (
            "WatchEvent",
            json!({
                "schema_version": 1, "election_id": room, "status": "leader", "leader": leader,
                "retry_after_ms": 14_000, "observed_at": "2026-11-29T12:00:16.123Z",
            }),
        ),
        (
            "ErrorBody",
            json!({
                "error": "Rate limit exceeded", "code": "rate_limited",
                "details": "this node allows each client 600 room creations and campaigns a minute; retry after \
                            retry_after_ms, or at another node",
                "retry_after_ms": 12_000, "request_id": "req_5fZ0pS3bQmGdV8cN1xkT2w",
            }),
        ),
        ("Health", json!({"status": "ok"})),
        ("Member", member.clone()),
        (
            "NodeReport",
            json!({
                "version": "0.1.0", "name": "node-1", "node_id": 1,
                "cluster_id": "0b9d1f7e-6d0c-4c39-9d53-3a1f0c5e7b21", "role": "raft_leader", "raft_leader": "node-1",
                "raft_term": 3, "last_log_index": 4711, "committed_index": 4711, "applied_index": 4711,
                "state_digest": "6f1ed002ab5595859014ebf0951522d9", "live_leases": 12, "log_entries_written": 4711,
                "log_flushes": 512, "members": [member], "ready": true,
            }),
        ),
    ]
}

#[cfg(test)]
mod tests;
