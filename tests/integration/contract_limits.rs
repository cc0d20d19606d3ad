//! Limits of a node: the number of leases, the rate of campaigns, and who may use elections.

use reqwest::Method;
use serde_json::json;

use crate::caller::{Answer, Caller, one_node};
use crate::harness::write_secret;

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_of_leases_new_rooms_are_refused_and_occupied_rooms_go_on() {
    let (_cluster, node) = one_node(&["--max-live-leases", "3"]).await;
    let mut held = Vec::new();
    for count in 0..3 {
        let room = format!("capacity-{count}");
        let ttl_seconds = 20 + 20 * count;
        held.push(node.campaign(&room, json!({"candidate_id": "a", "ttl_seconds": ttl_seconds})).await.held(&room));
    }
    let refused = node.campaign("capacity-full", json!({"candidate_id": "a"})).await;
    refused.is_error(409, "capacity_exceeded");
    let retry_after_ms = refused.body["retry_after_ms"].as_u64().unwrap();
    assert!(
        (10_000..=21_000).contains(&retry_after_ms),
        "the retry comes when the first lease can expire: {retry_after_ms}"
    );
    node.campaign("capacity-0", json!({"candidate_id": "b"})).await.is_follower();
    assert_eq!(node.status("capacity-full").await.body["status"], "vacant");
    for lease in &held {
        assert_eq!(node.renew(&lease.room, &lease.token).await.held(&lease.room).term, lease.term);
    }
    node.resign(&held[1].room, &held[1].token).await;
    node.campaign("capacity-full", json!({"candidate_id": "a"})).await.held("capacity-full");
    node.campaign(&held[1].room, json!({"candidate_id": "a"})).await.is_error(409, "capacity_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_limit_delays_campaigns_and_new_rooms_and_nothing_else() {
    let (_cluster, node) = one_node(&["--campaigns-per-minute", "5"]).await;
    let room = "rate-limits";
    let held = node.campaign(room, json!({"candidate_id": "worker-a"})).await.held(room);
    for _ in 0..2 {
        assert_eq!(node.send(node.request(Method::POST, "/elections")).await.status, 201);
        node.campaign(room, json!({"candidate_id": "worker-b"})).await.is_follower();
    }
    let made = async |more: &[(&str, &str)]| {
        let mut request = node.request(Method::POST, "/elections");
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        node.send(request).await
    };
    let limited: [Answer; 4] = [
        made(&[]).await,
        node.campaign(room, json!({"candidate_id": "worker-b"})).await,
        made(&[("X-Forwarded-For", "192.0.2.1")]).await,
        made(&[("Forwarded", "for=192.0.2.1")]).await,
    ];
    for answer in limited {
        answer.is_error(429, "rate_limited");
        let retry_after_ms = answer.body["retry_after_ms"].as_u64().unwrap();
        assert!(
            (1..=12_000).contains(&retry_after_ms),
            "there is one more campaign every twelve seconds: {retry_after_ms}"
        );
        let details = answer.body["details"].as_str().unwrap();
        assert!(
            details.starts_with("this node allows each client 5 room creations and campaigns a minute"),
            "{details}"
        );
    }
    for _ in 0..20 {
        assert_eq!(node.renew(room, &held.token).await.status, 200);
        assert_eq!(node.status(room).await.status, 200);
        node.resign(room, &"A".repeat(43)).await.is_error(404, "lease_not_current");
    }
    assert_eq!(node.resign(room, &held.token).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_behind_a_trusted_proxy_has_its_own_rate_limit() {
    let (_cluster, node) =
        one_node(&["--campaigns-per-minute", "2", "--trusted-proxies", "127.0.0.0/8,10.0.0.0/8"]).await;
    let made = async |name: &str, value: &str| {
        node.send(node.request(Method::POST, "/elections").header(name, value)).await.status
    };
    // Each row is one client. The text to the left of what the proxies add comes from the client and does not count.
    for [first, second, third] in [
        ["192.0.2.1", "192.0.2.1", "203.0.113.9, 192.0.2.1, 10.1.2.3"],
        ["192.0.2.2", "nonsense, 192.0.2.2", "192.0.2.1, 192.0.2.2:4711"],
        ["2001:db8::1", "2001:db8::ffff", "[2001:db8::2]:4711, 127.0.0.9"],
    ] {
        assert_eq!(made("X-Forwarded-For", first).await, 201);
        assert_eq!(made("X-Forwarded-For", second).await, 201);
        assert_eq!(made("X-Forwarded-For", third).await, 429, "{third}");
    }
    assert_eq!(made("X-Forwarded-For", "2001:db8:0:1::1").await, 201, "this client is in another /64 network");
    assert_eq!(made("Forwarded", "for=\"[2001:db8:0:2::1]:4711\";proto=https").await, 201);
    assert_eq!(made("Forwarded", "for=192.0.2.1").await, 429);
}

/// Sends a valid request to each election route. Returns the routes with their answers.
async fn election_routes(node: &Caller, access: Option<&str>) -> Vec<(String, Answer)> {
    let mut answers = Vec::new();
    for (method, path, body) in [
        (Method::POST, "/elections", json!({})),
        (Method::POST, "/elections/guarded-room/campaign", json!({"candidate_id": "worker-a"})),
        (Method::POST, "/elections/guarded-room/renew", json!({"leader_token": "A".repeat(43)})),
        (Method::POST, "/elections/guarded-room/resign", json!({"leader_token": "A".repeat(43)})),
        (Method::GET, "/elections/guarded-room", json!({})),
        (Method::GET, "/elections/guarded-room/watch", json!({})),
    ] {
        let mut request = node.request(method.clone(), path).json(&body);
        if let Some(access) = access {
            request = request.header("Authorization", access);
        }
        // An accepted watch stream would not end, so it is left out.
        let is_stream = path.ends_with("/watch") && access.is_some_and(|access| access.ends_with("-one-0001"));
        if !is_stream {
            answers.push((format!("{method} {path}"), node.send(request).await));
        }
    }
    answers
}

async fn health_is_open(node: &Caller) {
    for path in ["/livez", "/readyz", "/health", "/status", "/openapi.json"] {
        assert_eq!(node.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_access_tokens_only_clients_with_a_token_may_use_elections() {
    let folder = tempfile::tempdir().unwrap();
    let file = write_secret(folder.path(), "access", "# for tests\naccess-token-one-0001\n\naccess-token-two-0002\n");
    let (_cluster, node) = one_node(&["--access-token-file", file.to_str().unwrap()]).await;
    for none in [None, Some("Basic YWNjZXNzLXRva2VuLW9uZS0wMDAx"), Some("access-token-two-0002")] {
        for (route, answer) in election_routes(&node, none).await {
            assert_eq!(answer.body["code"], "authentication_required", "{route} {none:?}");
        }
    }
    for wrong in ["Bearer access-token-two-0003", "Bearer ", "Bearer # for tests", "Bearer access-token-two-000"] {
        for (route, answer) in election_routes(&node, Some(wrong)).await {
            assert_eq!(answer.body["code"], "authentication_failed", "{route} {wrong}");
        }
    }
    let statuses: Vec<u16> = election_routes(&node, Some("Bearer access-token-one-0001"))
        .await
        .iter()
        .map(|(_, answer)| answer.status)
        .collect();
    assert_eq!(statuses, [201, 200, 404, 404, 200]);
    health_is_open(&node).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_no_elections_every_election_route_is_forbidden_and_the_node_is_healthy() {
    let (_cluster, node) = one_node(&["--no-elections"]).await;
    for (route, answer) in election_routes(&node, None).await {
        assert_eq!(answer.body["code"], "forbidden", "{route}");
    }
    health_is_open(&node).await;
}
