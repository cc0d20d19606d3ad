//! Campaigns that wait: their order, their duration, and waiters whose connection is gone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::caller::{Caller, Held, one_node};
use crate::harness::eventually;
use crate::raw_connection::{reset, send_raw};

/// Starts a campaign that waits, on its own connection, and returns when it is in the queue.
async fn wait_in_queue(node: &Caller, room: &str, body: Value, headers: &str) -> TcpStream {
    let line = format!("POST /elections/{room}/campaign");
    let stream = send_raw(&node.url, &line, headers, &body.to_string()).await;
    // Once later campaigns have been answered, the first try of this one has failed, and it waits.
    for _ in 0..5 {
        node.campaign(room, json!({"candidate_id": "passer-by"})).await.is_follower();
    }
    stream
}

/// The body of the answer on such a connection.
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
async fn a_wait_ends_when_the_room_is_won_or_the_time_is_over() {
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
    assert_eq!(answer.body["valid_for_ms"], 30_000, "the lease counts from the grant, not from the request");
    assert!((5_000..6_000).contains(&waited.as_millis()), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_at_one_node_win_in_order_of_arrival() {
    let (_cluster, node) = one_node(&[]).await;
    let room = "first-come-first-served";
    let mut held = node.win(room, "holder", 60).await;
    let mut queue = Vec::new();
    for candidate in ["first", "second", "third"] {
        let body = json!({"candidate_id": candidate, "wait_seconds": 50, "ttl_seconds": 60});
        queue.push((candidate, wait_in_queue(&node, room, body, "").await));
    }
    for (candidate, stream) in queue {
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
async fn waiters_whose_connection_is_closed_are_skipped() {
    let (_cluster, node) = one_node(&[]).await;
    let room = "only-the-living";
    let held = node.win(room, "holder", 60).await;
    let waiting = |candidate: String| json!({"candidate_id": candidate, "wait_seconds": 60, "ttl_seconds": 60});
    let mut gone = Vec::new();
    for count in 0..24 {
        gone.push(wait_in_queue(&node, room, waiting(format!("gone-{count}")), "").await);
    }
    let living = wait_in_queue(&node, room, waiting("living".into()), "").await;
    for (count, stream) in gone.into_iter().enumerate() {
        if count % 2 == 0 { reset(stream) } else { drop(stream) }
    }
    assert_eq!(node.resign(room, &held.token).await.status, 200);
    let resigned_at = Instant::now();
    let answer = answer_of(living).await;
    assert!(resigned_at.elapsed() < Duration::from_secs(1), "{:?}", resigned_at.elapsed());
    assert_eq!(answer["leader"]["candidate_id"], "living", "{answer}");

    // If all waiters are gone, the next contender wins the room.
    let held = Held::from_body(room, &answer);
    for count in 0..6 {
        let stream = wait_in_queue(&node, room, waiting(format!("gone-{count}")), "").await;
        if count % 2 == 0 { reset(stream) } else { drop(stream) }
    }
    assert_eq!(node.resign(room, &held.token).await.status, 200);
    let resigned_at = Instant::now();
    eventually("a new contender wins the room", || async {
        let answer = node.campaign(room, json!({"candidate_id": "passer-by"})).await;
        (answer.body["status"] == "leader").then_some(())
    })
    .await;
    assert!(resigned_at.elapsed() < Duration::from_secs(1), "{:?}", resigned_at.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_that_does_not_read_its_answer_blocks_the_room_no_longer_than_its_ttl() {
    let (_cluster, node) = one_node(&[]).await;
    let room = "silence-is-costly";
    let held = node.win(room, "holder", 60).await;
    let body = json!({"candidate_id": "silent", "wait_seconds": 60, "ttl_seconds": 5});
    // This connection stays open, and nobody reads from it.
    let _silent = wait_in_queue(&node, room, body, "").await;
    let living = wait_in_queue(&node, room, json!({"candidate_id": "living", "wait_seconds": 60}), "").await;
    assert_eq!(node.resign(room, &held.token).await.status, 200);
    let resigned_at = Instant::now();
    assert_eq!(answer_of(living).await["leader"]["candidate_id"], "living");
    assert!(resigned_at.elapsed() < Duration::from_secs(7), "{:?}", resigned_at.elapsed());
}

/// A caller whose connection broke repeats its campaign with the same key. If it is told that it holds the room, the
/// node must not resign for the first request. Otherwise another contender could hold the room at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_does_not_end_a_lease_that_was_acknowledged_for_its_key_later() {
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
            // In this time the node notices the broken connection, and could wrongly resign.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let renewed = node.renew(&room, &held.token).await;
            (renewed.status == 200).then_some(()).ok_or(renewed.text)
        }
    });
    let lost: Vec<String> = futures::future::join_all(tries).await.into_iter().filter_map(Result::err).collect();
    assert!(lost.is_empty(), "{} of 150 leases are lost, the first with {}", lost.len(), lost[0]);
}
