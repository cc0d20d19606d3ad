//! Requests that come all at once, in drops, or not at all.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::caller::Caller;
use crate::raw_connection::{PATIENCE, RawConnection};
use crate::raw_requests::{CAMPAIGN, ROOM, framed, is_unharmed, node, plain, with_length};

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_one_go_are_answered_in_their_order() {
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
    assert_eq!(ids.len(), 200, "each has an id of its own");
    assert_eq!(connection.receive(false).await.unwrap().json(), json!({"status": "ok"}));
    assert!(connection.receive(false).await.is_none(), "nothing after the request that asked for the end");
    is_unharmed(&cluster).await;
}

/// Who closes its side of the connection has gone, as far as a node is concerned: it can't tell the two apart.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_closed_on_one_side_is_closed() {
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
            // It is in line once those who come after it have been answered.
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
    // Nobody is left in connection.
    assert_eq!(caller.resign("half-closed-room", &held.token).await.status, 200);
    caller.campaign("half-closed-room", json!({"candidate_id": "passer-by"})).await.held("half-closed-room");
    is_unharmed(&cluster).await;
}

/// A name, what comes at once, what comes in drops, and the status that is the answer.
type SlowSender = (&'static str, Vec<u8>, &'static [u8], Option<u16>);

/// Slow senders, and connections that say nothing, are closed after 10 s; meanwhile the others are served.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_too_slowly_is_not_waited_for() {
    let cluster = node().await;
    let node = &cluster.nodes[0];
    let slow: Vec<SlowSender> = vec![
        ("nothing", Vec::new(), b"", None),
        ("one letter", b"G".to_vec(), b"", None),
        ("the beginning of HTTP/2", b"PRI * HT".to_vec(), b"", None),
        ("the beginning of TLS", b"\r".to_vec(), b"", None),
        ("half a head", b"GET /livez HTTP/1.1\r\nHost: a\r\n".to_vec(), b"", None),
        ("a head in drops", b"GET /livez HTTP/1.1\r\n".to_vec(), b"X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", None),
        ("half a body", framed("Content-Length: 20\r\n", &CAMPAIGN[..7]), b"", Some(400)),
        ("a body in drops", framed("Content-Length: 90\r\n", ""), b"{\"candidate_id\":\"aaaaaaaaaaaaaaaa", Some(400)),
        (
            "chunks in drops",
            framed("Transfer-Encoding: chunked\r\n", ""),
            b"50\r\n{\"candidate_id\":\"aaaaaaaaaaaa",
            Some(400),
        ),
    ];
    let beginning = Instant::now();
    let slow_ones = slow.iter().map(|(name, start, rest, wanted)| async move {
        let mut connection = RawConnection::open(node).await;
        let opened_at = Instant::now();
        connection.send(start).await;
        let (mut reading, mut writing) = connection.stream.into_split();
        let drops = async move {
            for letter in rest.chunks(1) {
                tokio::time::sleep(Duration::from_millis(400)).await;
                if writing.write_all(letter).await.is_err() {
                    break;
                }
            }
            writing
        };
        let mut heard = Vec::new();
        let hearing = async {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = reading.read(&mut piece).await {
                heard.extend_from_slice(&piece[..count]);
            }
            opened_at.elapsed()
        };
        let (took, _writing) =
            tokio::time::timeout(PATIENCE, async { tokio::join!(hearing, drops) }).await.expect("the end");
        let text = String::from_utf8_lossy(&heard);
        let status = text.get(9..12).and_then(|digits| digits.parse::<u16>().ok());
        assert_eq!(status, *wanted, "{name}: {text}");
        assert_eq!(text.contains("the body must arrive in time"), wanted.is_some(), "{name}: {text}");
        assert!((9..15).contains(&took.as_secs()), "{name}: {took:?}");
    });
    let silent_ones = (0..100).map(|_| async {
        let mut connection = RawConnection::open(node).await;
        assert!(connection.receive(false).await.is_none());
        assert!(beginning.elapsed() >= Duration::from_secs(9), "{:?}", beginning.elapsed());
    });
    // Those who have asked once, and then keep the connection for nothing.
    let idle_ones = (0..20).map(|_| async {
        let mut connection = RawConnection::open(node).await;
        connection.send(&plain("GET", "/livez", "")).await;
        assert_eq!(connection.receive(false).await.unwrap().status, 200);
        assert!(connection.receive(false).await.is_none());
    });
    let served = async {
        let caller = Caller::of(node).await;
        let held = caller.campaign("beside-the-slow", json!({"candidate_id": "quick"})).await.held("beside-the-slow");
        let mut slowest = Duration::ZERO;
        while beginning.elapsed() < Duration::from_secs(9) {
            let asked_at = Instant::now();
            assert_eq!(caller.renew("beside-the-slow", &held.token).await.status, 200);
            slowest = slowest.max(asked_at.elapsed());
        }
        println!("beside slow senders the slowest renewal took {slowest:?}");
        assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    };
    let all = async {
        tokio::join!(
            futures::future::join_all(slow_ones),
            futures::future::join_all(silent_ones),
            futures::future::join_all(idle_ones),
            served
        )
    };
    all.await;
    is_unharmed(&cluster).await;
}
