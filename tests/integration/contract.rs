//! The contract of the client listener, call by call. Most tests use one node.

use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Answer, Caller, Held, fields_of, one_node};
use crate::harness::{Cluster, eventually};

/// The milliseconds since 1970 in a timestamp, after a check of its format.
fn millis_of(expires_at: &Value) -> i64 {
    let text = expires_at.as_str().unwrap();
    assert!(text.len() == "2026-11-29T12:00:30.123Z".len() && text.ends_with('Z'), "{text}");
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Makes a room, and checks the answer. Returns its id.
async fn make_room(node: &Caller) -> String {
    let made = node.send(node.request(Method::POST, "/elections").body("a body is ignored")).await;
    made.has_fields(201, "campaign_path election_id status_path watch_path");
    let room = made.body["election_id"].as_str().unwrap();
    assert!(room.len() == 32 && room.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)), "{room}");
    assert_eq!(made.header("location"), format!("/elections/{room}"));
    assert_eq!(made.body["status_path"], format!("/elections/{room}"));
    assert_eq!(made.body["campaign_path"], format!("/elections/{room}/campaign"));
    assert_eq!(made.body["watch_path"], format!("/elections/{room}/watch"));
    let another = node.send(node.request(Method::POST, "/elections")).await;
    assert_ne!(another.body["election_id"], made.body["election_id"]);
    room.to_owned()
}

/// Checks every field of the answer to a campaign that won, without a TTL and without metadata.
fn is_granted_with_defaults(won: &Answer, room: &str) -> Held {
    won.has_fields(200, "election_id leader leader_token renew_after_ms status valid_for_ms");
    let held = won.held(room);
    assert_eq!(fields_of(&won.body["leader"]), ["candidate_id", "expires_at", "term"], "no metadata was given");
    assert_eq!((&won.body["election_id"], &won.body["leader"]["candidate_id"]), (&json!(room), &json!("worker-a")));
    assert_eq!((&won.body["renew_after_ms"], &won.body["valid_for_ms"]), (&json!(15_000), &json!(30_000)));
    assert!(held.token.len() == 43 && held.token.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
    assert!((1..1 << 53).contains(&held.term));
    let from_now = millis_of(&won.body["leader"]["expires_at"]) - jiff::Timestamp::now().as_millisecond();
    assert!((28_000..=31_000).contains(&from_now), "{from_now}");
    held
}

/// Checks what other campaigns and readers are told while the room is occupied.
async fn is_occupied(node: &Caller, won: &Answer, room: &str) {
    for candidate in ["worker-b", "worker-a"] {
        let occupied = node.campaign(room, json!({"candidate_id": candidate})).await;
        occupied.is_follower().has_fields(200, "election_id leader retry_after_ms status");
        assert_eq!((&occupied.body["election_id"], &occupied.body["leader"]), (&json!(room), &won.body["leader"]));
        assert!((20_000..=31_000).contains(&occupied.body["retry_after_ms"].as_u64().unwrap()), "{}", occupied.text);
        assert_eq!(occupied.header("x-quorate-node"), "n1");
    }
    let seen = node.status(room).await;
    seen.has_fields(200, "election_id leader retry_after_ms status");
    assert_eq!((&seen.body["status"], &seen.body["leader"]), (&json!("leader"), &won.body["leader"]));
    assert_eq!(seen.header("x-quorate-node"), "n1");
}

/// Renews with and without metadata. A renewal without it keeps the metadata of the lease.
async fn is_renewed_with_its_metadata(node: &Caller, held: &Held) {
    let room = &held.room;
    for (given, shown) in [
        (json!({}), Value::Null),
        (json!({"metadata": "first"}), json!("first")),
        (json!({"metadata": null}), json!("first")),
        (json!({"ttl_seconds": 60}), json!("first")),
        (json!({"metadata": "sécond"}), json!("sécond")),
        (json!({"metadata": ""}), json!("")),
    ] {
        let mut request = given.clone();
        request["leader_token"] = json!(held.token);
        let renewed = node.post(&format!("/elections/{room}/renew"), request).await;
        renewed.has_fields(200, "election_id leader leader_token renew_after_ms status valid_for_ms");
        let same = renewed.held(room);
        assert_eq!((same.term, &same.token), (held.term, &held.token));
        assert_eq!(renewed.body["leader"].get("metadata").unwrap_or(&Value::Null), &shown, "{given}");
        assert_eq!(node.status(room).await.body["leader"], renewed.body["leader"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn winning_renewing_and_resigning_are_answered_with_exactly_the_documented_fields() {
    let (_cluster, node) = one_node(&[]).await;
    let room = &make_room(&node).await;
    let vacant = json!({"election_id": room, "status": "vacant", "retry_after_ms": 0});
    assert_eq!(node.status(room).await.body, vacant);

    let won = node.campaign(room, json!({"candidate_id": "worker-a", "unknown": {"field": 1}})).await;
    let held = is_granted_with_defaults(&won, room);
    is_occupied(&node, &won, room).await;
    is_renewed_with_its_metadata(&node, &held).await;

    let resigned = node.resign(room, &held.token).await;
    assert_eq!(resigned.status, 200);
    assert_eq!(resigned.body, json!({"election_id": room, "status": "vacant", "previous_term": held.term}));
    assert_eq!(node.status(room).await.body, vacant);
    let next = node.campaign(room, json!({"candidate_id": "worker-b", "metadata": "from the start"})).await;
    assert!(next.held(room).term > held.term);
    assert_eq!(next.body["leader"]["metadata"], "from the start");
    for answer in [&won, &resigned, &next] {
        assert_eq!(answer.header("x-quorate-node"), "n1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_never_moves_the_expiry_to_an_earlier_time() {
    let (_cluster, node) = one_node(&[]).await;
    let room = "never-shorter";
    let won = node.campaign(room, json!({"candidate_id": "worker-a", "ttl_seconds": 60})).await;
    let held = won.held(room);
    let renew = async |more: Value| {
        let mut body = json!({"leader_token": held.token});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = node.post("/elections/never-shorter/renew", body).await;
        (
            millis_of(&answer.body["leader"]["expires_at"]),
            answer.body["valid_for_ms"].clone(),
            answer.body["renew_after_ms"].clone(),
        )
    };
    let first = millis_of(&won.body["leader"]["expires_at"]);
    assert_eq!(
        renew(json!({"ttl_seconds": 5})).await,
        (first, json!(5_000), json!(2_500)),
        "the shorter TTL is confirmed"
    );
    assert_eq!(
        renew(json!({})).await,
        (first, json!(5_000), json!(2_500)),
        "the lease keeps the TTL of the last renewal"
    );
    let (longer, valid_for_ms, renew_after_ms) = renew(json!({"ttl_seconds": 300})).await;
    assert_eq!((valid_for_ms, renew_after_ms), (json!(300_000), json!(150_000)));
    assert!((longer - first - 240_000).abs() < 5_000, "{}", longer - first);
    assert_eq!(renew(json!({"ttl_seconds": 30})).await.0, longer);
    let (later, ..) = renew(json!({"ttl_seconds": 300})).await;
    assert!(later >= longer);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_of_the_current_lease_is_current() {
    let (_cluster, node) = one_node(&[]).await;
    let never_issued = "A".repeat(43);
    let resigned = node.win("old-resigned", "worker-a", 60).await;
    node.resign("old-resigned", &resigned.token).await;
    let expired = node.win("old-expired", "worker-a", 5).await;
    let superseded = node.win("old-superseded", "worker-a", 5).await;
    eventually("both leases expire", || async {
        let vacant = node.status("old-superseded").await.body["status"] == "vacant"
            && node.status("old-expired").await.body["status"] == "vacant";
        vacant.then_some(())
    })
    .await;
    let current = node.win("old-superseded", "worker-b", 60).await;
    let elsewhere = node.win("old-elsewhere", "worker-a", 60).await;
    assert!(current.term > superseded.term && elsewhere.term > current.term);
    for (room, token) in [
        ("old-resigned", &resigned.token),
        ("old-expired", &expired.token),
        ("old-superseded", &superseded.token),
        ("old-superseded", &elsewhere.token),
        ("old-superseded", &never_issued),
        ("never-led-by-any", &never_issued),
    ] {
        node.renew(room, token).await.is_error(404, "lease_not_current");
        node.resign(room, token).await.is_error(404, "lease_not_current");
    }
    assert_eq!(node.status("old-superseded").await.body["leader"]["term"], current.term);
    assert_eq!(node.renew("old-superseded", &current.token).await.held("old-superseded").term, current.term);

    let (short, long, padded) = (&current.token[..42], format!("{}A", current.token), format!("{}=", current.token));
    for token in [json!(""), json!(short), json!(long), json!(padded), json!("=".repeat(43)), json!(7), Value::Null] {
        for action in ["renew", "resign"] {
            let answer =
                node.post(&format!("/elections/old-superseded/{action}"), json!({"leader_token": token})).await;
            answer.is_error(400, "invalid_input");
            assert!(!answer.text.contains(&current.token[..16]), "the error quotes the token: {}", answer.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn terms_rise_across_all_rooms_and_restarts() {
    let (mut cluster, node) = one_node(&[]).await;
    let mut last = 0;
    for round in 0..2 {
        for count in 0..30 {
            let room = format!("rising-terms-{}", count % 7);
            let held = node.campaign(&room, json!({"candidate_id": "worker-a"})).await.held(&room);
            assert!(last < held.term && held.term < 1 << 53, "{last} {}", held.term);
            last = held.term;
            node.resign(&room, &held.token).await;
        }
        if round == 0 {
            cluster.nodes[0].kill();
            cluster.nodes[0].start_again();
            cluster.ready().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_returns_the_lease_that_it_won_and_no_other() {
    let (_cluster, node) = one_node(&[]).await;
    let (room, key) = ("same-key-room", "a-key-of-one-campaign-0001");
    let first = node.campaign_with_key(room, "worker-a", key).await.held(room);
    let mut last_valid_for = 30_000;
    for _ in 0..3 {
        let again = node.campaign_with_key(room, "worker-a", key).await;
        let same = again.held(room);
        assert_eq!((same.term, &same.token), (first.term, &first.token));
        let valid_for = again.body["valid_for_ms"].as_u64().unwrap();
        assert!(valid_for <= last_valid_for, "{valid_for} {last_valid_for}");
        last_valid_for = valid_for;
    }
    node.campaign_with_key(room, "worker-b", key).await.is_follower();
    node.campaign_with_key(room, "worker-a", "a-key-of-another-0000001").await.is_follower();
    node.campaign(room, json!({"candidate_id": "worker-a"})).await.is_follower();
    let other_room = node.campaign_with_key("same-key-other", "worker-a", key).await.held("same-key-other");
    assert!(other_room.token != first.token && other_room.term > first.term);

    assert_eq!(node.renew(room, &first.token).await.status, 200);
    assert_eq!(
        node.campaign_with_key(room, "worker-a", key).await.held(room).token,
        first.token,
        "a renewal does not change the token"
    );
    node.resign(room, &first.token).await;
    let second = node.campaign_with_key(room, "worker-a", key).await.held(room);
    assert!(second.term > first.term && second.token != first.token);
    node.renew(room, &first.token).await.is_error(404, "lease_not_current");

    for length in [16, 128] {
        let room = format!("key-of-length-{length}");
        node.campaign_with_key(&room, "worker-a", &"k".repeat(length)).await.held(&room);
    }
    let too_long = "k".repeat(129);
    for bad in ["fifteen-chars--", &too_long, "with a space inside it", "", "with-umlaut-äöü-inside"] {
        node.campaign_with_key("key-is-bad", "worker-a", bad).await.is_error(400, "invalid_input");
    }
    let twice = node.request(Method::POST, "/elections/key-is-bad/campaign").json(&json!({"candidate_id": "a"}));
    let twice = twice.header("Idempotency-Key", key).header("Idempotency-Key", key);
    node.send(twice).await.is_error(400, "invalid_input");
    assert_eq!(node.status("key-is-bad").await.body["status"], "vacant");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_routes_show_the_state_of_the_node() {
    let (mut cluster, node) = one_node(&[]).await;
    for path in ["/livez", "/readyz", "/health"] {
        let answer = node.get(path).await;
        assert_eq!((answer.status, &answer.body), (200, &json!({"status": "ok"})), "{path}");
    }
    let held = node.campaign("health-room", json!({"candidate_id": "worker-a"})).await.held("health-room");
    let status = node.get("/status").await;
    status.has_fields(
        200,
        "applied_index cluster_id committed_index last_log_index live_leases log_entries_written log_flushes members \
         name node_id raft_leader raft_term ready role state_digest version",
    );
    assert_eq!((&status.body["name"], &status.body["raft_leader"]), (&json!("n1"), &json!("n1")));
    assert_eq!((&status.body["role"], &status.body["ready"]), (&json!("raft_leader"), &json!(true)));
    assert_eq!((&status.body["live_leases"], &status.body["version"]), (&json!(1), &json!(env!("CARGO_PKG_VERSION"))));
    let members = status.body["members"].as_array().unwrap();
    assert_eq!(fields_of(&members[0]), ["name", "node_id", "peer", "url", "voter"]);
    assert_eq!((members.len(), &members[0]["url"], &members[0]["voter"]), (1, &json!(node.url), &json!(true)));
    assert_eq!(members[0]["node_id"], status.body["node_id"]);
    assert!(status.body["node_id"].as_u64().unwrap() < 1 << 53, "JavaScript reads it exactly");

    cluster.nodes[0].kill();
    cluster.nodes[0].start_again();
    cluster.ready().await;
    let again = node.get("/status").await;
    for field in ["node_id", "cluster_id", "live_leases"] {
        assert_eq!(again.body[field], status.body[field], "{field}");
    }
    assert_eq!(node.renew("health-room", &held.token).await.held("health-room").term, held.term);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_names_the_node_that_decided_whichever_node_was_called() {
    let cluster = Cluster::three().await;
    let raft_leader = &cluster.nodes[cluster.raft_leader().await].settings.name;
    let room = "who-decides";
    for node in &cluster.nodes {
        let caller = Caller::of(node).await;
        let won = caller.campaign(room, json!({"candidate_id": "worker-a"})).await;
        let held = won.held(room);
        let renewed = caller.renew(room, &held.token).await;
        let seen = caller.status(room).await;
        let occupied = caller.campaign(room, json!({"candidate_id": "worker-b"})).await;
        let stale = caller.resign(room, &"A".repeat(43)).await;
        stale.is_error(404, "lease_not_current");
        let resigned = caller.resign(room, &held.token).await;
        for answer in [&won, &renewed, &seen, &occupied, &resigned] {
            assert_eq!(
                (answer.status, answer.header("x-quorate-node")),
                (200, raft_leader.as_str()),
                "{}",
                answer.text
            );
        }
        let local = caller.local_status(room).await;
        assert_eq!(local.header("x-quorate-node"), node.settings.name, "a local read is answered by the node itself");
    }
}
