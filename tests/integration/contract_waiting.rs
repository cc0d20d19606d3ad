//! Campaigns that wait: whose turn it is, how long, and what becomes of those whose caller has gone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::caller::{Caller, Held, one_node};
use crate::harness::eventually;
use crate::raw_connection::{reset, send_raw};

/// Starts to wait on a connection of its own. Later campaigns for the room are behind this one.
async fn wait_in_line(node: &Caller, room: &str, body: Value, headers: &str) -> TcpStream {
    let line = format!("POST /elections/{room}/campaign");
    let stream = send_raw(&node.url, &line, headers, &body.to_string()).await;
    // By the time that others have been answered who came later, this one has lost its first try and waits.
    for _ in 0..5 {
        node.campaign(room, json!({"candidate_id": "passer-by"})).await.is_follower();
    }
    stream
}

/// The answer on such a connection.
async fn answer_of(mut stream: TcpStream) -> Value {
    let mut answer = String::new();
    loop {
        let mut piece = [0; 4096];
        let count = tokio::time::timeout(Duration::from_secs(70), stream.read(&mut piece)).await.unwrap().unwrap();
        assert!(count > 0, "closed after {answer:?}");
        answer.push_str(std::str::from_utf8(&piece[..count]).unwrap());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        if let Ok(json) = serde_json::from_str(body) {
            return json;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_the_room_or_when_its_time_is_over() {
    let (_cluster, node) = one_node(&[]).await;
    let held = node.win("waits-in-vain", "holder", 60).await;
    let asked_at = Instant::now();
    let answer = node.campaign("waits-in-vain", json!({"candidate_id": "waiter", "wait_seconds": 2})).await;
    let waited = asked_at.elapsed();
    answer.is_follower().has_fields(200, "election_id leader retry_after_ms status");
    assert_eq!(answer.body["leader"]["term"], held.term);
    assert!((2_000..3_500).contains(&waited.as_millis()), "{waited:?}");

    let asked_at = Instant::now();
    let answer = node.campaign("nobody-leads", json!({"candidate_id": "waiter", "wait_seconds": 60})).await;
    answer.held("nobody-leads");
    assert!(asked_at.elapsed() < Duration::from_secs(1), "a vacant room is won at once");

    let granted_at = Instant::now();
    let held = node.win("waits-for-expiry", "holder", 5).await;
    let answer = node.campaign("waits-for-expiry", json!({"candidate_id": "waiter", "wait_seconds": 30})).await;
    let waited = granted_at.elapsed();
    assert!(answer.held("waits-for-expiry").term > held.term);
    assert_eq!(answer.body["valid_for_ms"], 30_000, "counted from the grant, not from the request");
    assert!((5_000..6_000).contains(&waited.as_millis()), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_of_one_node_are_served_in_order_of_arrival() {
    let (_cluster, node) = one_node(&[]).await;
    let room = "first-come-first-served";
    let mut held = node.win(room, "holder", 60).await;
    let mut line = Vec::new();
    for candidate in ["first", "second", "third"] {
        let body = json!({"candidate_id": candidate, "wait_seconds": 50, "ttl_seconds": 60});
        line.push((candidate, wait_in_line(&node, room, body, "").await));
    }
    for (candidate, stream) in line {
        assert_eq!(node.resign(room, &held.token).await.status, 200);
        let resigned_at = Instant::now();
        let answer = answer_of(stream).await;
        assert_eq!(answer["leader"]["candidate_id"], candidate, "{answer}");
        assert!(resigned_at.elapsed() < Duration::from_secs(1), "{:?}", resigned_at.elapsed());
        let next = Held::from_body(room, &answer);
        assert!(next.term > held.term);
        held = next;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_whose_connection_was_closed_are_passed_over() {
    let (_cluster, node) = one_node(&[]).await;
    let room = "only-the-living";
    let held = node.win(room, "holder", 60).await;
    let waiting = |candidate: String| json!({"candidate_id": candidate, "wait_seconds": 60, "ttl_seconds": 60});
    let mut gone = Vec::new();
    for count in 0..24 {
        gone.push(wait_in_line(&node, room, waiting(format!("gone-{count}")), "").await);
    }
    let living = wait_in_line(&node, room, waiting("living".into()), "").await;
    for (count, stream) in gone.into_iter().enumerate() {
        if count % 2 == 0 { reset(stream) } else { drop(stream) }
    }
    assert_eq!(node.resign(room, &held.token).await.status, 200);
    let resigned_at = Instant::now();
    let answer = answer_of(living).await;
    assert!(resigned_at.elapsed() < Duration::from_secs(1), "{:?}", resigned_at.elapsed());
    assert_eq!(answer["leader"]["candidate_id"], "living", "{answer}");

    // With nobody alive in line the room is free for whoever comes next.
    let held = Held::from_body(room, &answer);
    for count in 0..6 {
        let stream = wait_in_line(&node, room, waiting(format!("gone-{count}")), "").await;
        if count % 2 == 0 { reset(stream) } else { drop(stream) }
    }
    assert_eq!(node.resign(room, &held.token).await.status, 200);
    let resigned_at = Instant::now();
    eventually("the room is won by one who just came", || async {
        let answer = node.campaign(room, json!({"candidate_id": "passer-by"})).await;
        (answer.body["status"] == "leader").then_some(())
    })
    .await;
    assert!(resigned_at.elapsed() < Duration::from_secs(1), "{:?}", resigned_at.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_waiter_keeps_the_room_from_others_no_longer_than_its_own_ttl() {
    let (_cluster, node) = one_node(&[]).await;
    let room = "silence-is-costly";
    let held = node.win(room, "holder", 60).await;
    let body = json!({"candidate_id": "silent", "wait_seconds": 60, "ttl_seconds": 5});
    // Its connection stays open, and nobody reads from it.
    let _silent = wait_in_line(&node, room, body, "").await;
    let living = wait_in_line(&node, room, json!({"candidate_id": "living", "wait_seconds": 60}), "").await;
    assert_eq!(node.resign(room, &held.token).await.status, 200);
    let resigned_at = Instant::now();
    assert_eq!(answer_of(living).await["leader"]["candidate_id"], "living");
    assert!(resigned_at.elapsed() < Duration::from_secs(7), "{:?}", resigned_at.elapsed());
}

/// A caller whose connection broke comes again with its key. If it is then told that it leads, it must lead:
/// giving back what the first request won would leave a second holder beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_a_key_was_told_of_is_not_given_back_for_the_connection_that_broke() {
    let (_cluster, node) = one_node(&[]).await;
    let tries = (0..150).map(|count| {
        let node = node.clone();
        async move {
            let room = format!("broken-and-back-{count}");
            let key = format!("a-key-of-broken-{count:04}");
            let line = format!("POST /elections/{room}/campaign");
            let body = json!({"candidate_id": "worker-a", "wait_seconds": 5}).to_string();
            let first = send_raw(&node.url, &line, &format!("Idempotency-Key: {key}\r\n"), &body).await;
            tokio::time::sleep(Duration::from_micros(200 * (count % 50))).await;
            reset(first);
            let held = node.campaign_with_key(&room, "worker-a", &key).await.held(&room);
            // Long enough for the node to notice, and to do what it must not do.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let renewed = node.renew(&room, &held.token).await;
            (renewed.status == 200).then_some(()).ok_or(renewed.text)
        }
    });
    let lost: Vec<String> = futures::future::join_all(tries).await.into_iter().filter_map(Result::err).collect();
    assert!(lost.is_empty(), "{} of 150, as {}", lost.len(), lost[0]);
}
