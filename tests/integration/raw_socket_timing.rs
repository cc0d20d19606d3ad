//! Requests that arrive all at once, slowly, or not at all.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::caller::Caller;
use crate::harness::Node;
use crate::raw_connection::{PATIENCE, RawConnection};
use crate::raw_requests::{CAMPAIGN, ROOM, framed, is_unharmed, node, plain, with_length};

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_order() {
    let cluster = node().await;
    let mut connection = RawConnection::open(&cluster.nodes[0]).await;
    let mut all = Vec::new();
    for round in 0..50 {
        all.extend(with_length("20"));
        all.extend(plain("GET", &format!("/nothing/{round}"), ""));
        all.extend(plain("HEAD", ROOM, ""));
        all.extend(plain("GET", ROOM, ""));
    }
    all.extend(plain("GET", "/livez", "Connection: close\r\n"));
    all.extend(plain("GET", "/status", ""));
    connection.send(&all).await;
    let mut ids = std::collections::BTreeSet::new();
    for round in 0..50 {
        let campaign = connection.receive(false).await.unwrap();
        let expected = if round == 0 { "leader" } else { "follower" };
        assert_eq!((campaign.status, &campaign.json()["status"]), (200, &json!(expected)), "{round}");
        let replies = [
            connection.receive(false).await.unwrap(),
            connection.receive(true).await.unwrap(),
            connection.receive(false).await.unwrap(),
        ];
        assert_eq!(replies.each_ref().map(|reply| reply.status), [404, 200, 200], "{round}");
        ids.extend(replies.iter().chain([&campaign]).map(|reply| reply.header("x-request-id").unwrap().to_owned()));
    }
    assert_eq!(ids.len(), 200, "two answers have the same request id");
    assert_eq!(connection.receive(false).await.unwrap().json(), json!({"status": "ok"}));
    assert!(connection.receive(false).await.is_none(), "a request after `Connection: close` was answered");
    is_unharmed(&cluster).await;
}

/// A node cannot tell a client that closed only its sending side from a client that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn the_node_closes_a_connection_whose_client_has_closed_its_sending_side() {
    let cluster = node().await;
    let node = &cluster.nodes[0];
    let caller = Caller::of(node).await;
    let held = caller.campaign("half-closed-room", json!({"candidate_id": "holder"})).await.held("half-closed-room");
    let wait = br#"{"candidate_id":"waiter","wait_seconds":60}"#;
    let waiting = format!(
        "POST /elections/half-closed-room/campaign HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        wait.len()
    );
    for (name, bytes, wanted) in [
        ("nothing", Vec::new(), None),
        ("half a head", b"GET /livez HTTP/1.1\r\nHo".to_vec(), None),
        ("a head without its last line", b"GET /livez HTTP/1.1\r\nHost: a\r\n".to_vec(), None),
        ("half a body", framed("Content-Length: 20\r\n", &CAMPAIGN[..7]), Some(400)),
        ("half a chunk", framed("Transfer-Encoding: chunked\r\n", "14\r\n{\"cand"), Some(400)),
        ("chunks without the last", framed("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n"), Some(400)),
        ("a campaign that waits", [waiting.as_bytes(), wait].concat(), None),
    ] {
        let mut connection = RawConnection::open(node).await;
        connection.send(&bytes).await;
        if name == "a campaign that waits" {
            // Once later campaigns have been answered, this one is in the queue.
            for _ in 0..5 {
                caller.campaign("half-closed-room", json!({"candidate_id": "passer-by"})).await.is_follower();
            }
        }
        connection.stream.shutdown().await.unwrap();
        let closed_at = Instant::now();
        let reply = connection.receive(false).await;
        assert_eq!(reply.as_ref().map(|reply| reply.status), wanted, "{name}: {reply:?}");
        assert!(connection.receive(false).await.is_none(), "{name}");
        assert!(closed_at.elapsed() < Duration::from_secs(5), "{name}: {:?}", closed_at.elapsed());
    }
    // The queue is empty, so the next contender wins.
    assert_eq!(caller.resign("half-closed-room", &held.token).await.status, 200);
    caller.campaign("half-closed-room", json!({"candidate_id": "passer-by"})).await.held("half-closed-room");
    is_unharmed(&cluster).await;
}

/// A sender that is too slow.
struct SlowSender {
    name: &'static str,
    /// The bytes that it sends at once.
    start: Vec<u8>,
    /// The bytes that it sends afterwards, one every 400 ms.
    drops: &'static [u8],
    /// The status of the answer, if there is one before the connection is closed.
    wanted: Option<u16>,
}

fn slow_senders() -> Vec<SlowSender> {
    let sender = |name, start, drops, wanted| SlowSender { name, start, drops, wanted };
    vec![
        sender("nothing", Vec::new(), b"", None),
        sender("one letter", b"G".to_vec(), b"", None),
        sender("the beginning of HTTP/2", b"PRI * HT".to_vec(), b"", None),
        sender("the beginning of TLS", b"\r".to_vec(), b"", None),
        sender("half a head", b"GET /livez HTTP/1.1\r\nHost: a\r\n".to_vec(), b"", None),
        sender("a head in drops", b"GET /livez HTTP/1.1\r\n".to_vec(), b"X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", None),
        sender("half a body", framed("Content-Length: 20\r\n", &CAMPAIGN[..7]), b"", Some(400)),
        sender(
            "a body in drops",
            framed("Content-Length: 90\r\n", ""),
            b"{\"candidate_id\":\"aaaaaaaaaaaaaaaa",
            Some(400),
        ),
        sender(
            "chunks in drops",
            framed("Transfer-Encoding: chunked\r\n", ""),
            b"50\r\n{\"candidate_id\":\"aaaaaaaaaaaa",
            Some(400),
        ),
    ]
}

/// Sends slowly until the node closes the connection, and checks when and how it does so.
async fn is_cut_off(node: &Node, SlowSender { name, start, drops, wanted }: SlowSender) {
    let mut connection = RawConnection::open(node).await;
    let opened_at = Instant::now();
    connection.send(&start).await;
    let (mut reading, mut writing) = connection.stream.into_split();
    let send_drops = async move {
        for letter in drops.chunks(1) {
            tokio::time::sleep(Duration::from_millis(400)).await;
            if writing.write_all(letter).await.is_err() {
                break;
            }
        }
        writing
    };
    let mut received = Vec::new();
    let receive = async {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = reading.read(&mut piece).await {
            received.extend_from_slice(&piece[..count]);
        }
        opened_at.elapsed()
    };
    let both = async { tokio::join!(receive, send_drops) };
    let (took, _writing) = tokio::time::timeout(PATIENCE, both).await.expect("the end of the connection");
    let text = String::from_utf8_lossy(&received);
    let status = text.get(9..12).and_then(|digits| digits.parse::<u16>().ok());
    assert_eq!(status, wanted, "{name}: {text}");
    assert_eq!(text.contains("the body must arrive in time"), wanted.is_some(), "{name}: {text}");
    assert!((9..15).contains(&took.as_secs()), "{name}: {took:?}");
}

/// Opens a connection, sends nothing, and checks that the node does not close it too early.
async fn is_closed_when_silent(node: &Node) {
    let opened_at = Instant::now();
    let mut connection = RawConnection::open(node).await;
    assert!(connection.receive(false).await.is_none());
    assert!(opened_at.elapsed() >= Duration::from_secs(9), "{:?}", opened_at.elapsed());
}

/// Sends one request, and then keeps the connection without using it.
async fn is_closed_when_idle(node: &Node) {
    let mut connection = RawConnection::open(node).await;
    connection.send(&plain("GET", "/livez", "")).await;
    assert_eq!(connection.receive(false).await.unwrap().status, 200);
    assert!(connection.receive(false).await.is_none());
}

/// Renews a lease again and again for 9 s, and checks that every renewal is fast.
async fn is_served_fast(node: &Node) {
    let beginning = Instant::now();
    let caller = Caller::of(node).await;
    let held = caller.win("beside-the-slow", "quick", 30).await;
    let mut slowest = Duration::ZERO;
    while beginning.elapsed() < Duration::from_secs(9) {
        let asked_at = Instant::now();
        assert_eq!(caller.renew("beside-the-slow", &held.token).await.status, 200);
        slowest = slowest.max(asked_at.elapsed());
    }
    println!("beside slow senders the slowest renewal took {slowest:?}");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_and_silent_connections_are_closed_after_10_s_and_delay_nobody() {
    let cluster = node().await;
    let node = &cluster.nodes[0];
    tokio::join!(
        futures::future::join_all(slow_senders().into_iter().map(|sender| is_cut_off(node, sender))),
        futures::future::join_all((0..100).map(|_| is_closed_when_silent(node))),
        futures::future::join_all((0..20).map(|_| is_closed_when_idle(node))),
        is_served_fast(node),
    );
    is_unharmed(&cluster).await;
}
