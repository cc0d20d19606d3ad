//! Bytes that no HTTP library would send: each gets exactly one kind of answer, or a closed connection; the node then
//! serves on, and nothing in it has panicked.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::caller::Caller;
use crate::harness::Cluster;
use crate::raw_line::{INVALID, Line, NOT_JSON, PATIENCE, TOO_LARGE, Wanted, answer_to, check};

const ROOM: &str = "/elections/raw-bytes-room";

async fn node() -> Cluster {
    Cluster::single_with(&["--log-level", "debug"]).await
}

/// The node serves on, and its trace tells of no panic and no bug.
async fn is_unharmed(cluster: &Cluster) {
    let node = &cluster.nodes[0];
    let caller = Caller::of(node).await;
    let held = caller.campaign("after-all-that", json!({"candidate_id": "worker-a"})).await.held("after-all-that");
    assert_eq!(caller.renew("after-all-that", &held.token).await.status, 200);
    assert_eq!(caller.resign("after-all-that", &held.token).await.status, 200);
    let output = node.output();
    assert!(output.contains("request answered"), "the trace tells nothing, so this has shown nothing");
    for bad in ["panicked", "\"level\":\"ERROR\""] {
        assert!(!output.contains(bad), "{bad}:\n{output}");
    }
}

/// A request without a body.
fn plain(method: &str, path: &str, headers: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n").into_bytes()
}

const CAMPAIGN: &[u8] = br#"{"candidate_id":"a"}"#;

/// A campaign whose framing and body are the caller's.
fn framed(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let head = format!("POST {ROOM}/campaign HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{headers}\r\n");
    [head.as_bytes(), body.as_ref()].concat()
}

fn chunked(coding: &str, size: &str) -> Vec<u8> {
    let body = [size.as_bytes(), b"\r\n", CAMPAIGN, b"\r\n0\r\n\r\n"].concat();
    framed(&format!("Transfer-Encoding: {coding}\r\n"), body)
}

fn with_length(length: &str) -> Vec<u8> {
    framed(&format!("Content-Length: {length}\r\n"), CAMPAIGN)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_http_gets_a_bare_status_and_the_end_of_the_connection() {
    let cluster = node().await;
    let many = |count: usize| (0..count).map(|number| format!("X-{number}: 1\r\n")).collect::<String>();
    let big = |bytes: usize| format!("X: {}\r\n", "x".repeat(bytes));
    let get = |headers: &str| plain("GET", "/livez", headers);
    check(
        &cluster.nodes[0],
        &[
            ("a head of nearly 16 KiB", get(&big(16_000)), Wanted::Ok(200)),
            ("a head of more", get(&big(17_000)), Wanted::Bare(431)),
            (
                "more than 16 KiB of a head that goes on",
                format!("GET /livez HTTP/1.1\r\nX: {}", "x".repeat(17_000)).into(),
                Wanted::Bare(431),
            ),
            (
                "a head without end",
                format!("GET /livez HTTP/1.1\r\nX: {}", "x".repeat(1 << 20)).into(),
                Wanted::Bare(431),
            ),
            ("100 headers, with the host", get(&many(99)), Wanted::Ok(200)),
            ("101 headers", get(&many(100)), Wanted::Bare(431)),
            ("a long path", plain("GET", &format!("/{}", "x".repeat(16_000)), ""), Wanted::Error(404, "not_found")),
            ("a longer path", plain("GET", &format!("/{}", "x".repeat(200_000)), ""), Wanted::Bare(431)),
            ("lines that end with LF", b"GET /livez HTTP/1.1\nHost: a\n\n".into(), Wanted::Ok(200)),
            ("lines that end with CR", b"GET /livez HTTP/1.1\rHost: a\r\r".into(), Wanted::Bare(400)),
            ("CR in a header", get("X: a\rb\r\n"), Wanted::Bare(400)),
            ("a folded header", get("X: a\r\n b\r\n"), Wanted::Bare(400)),
            ("empty lines first", [b"\r\n\r\n", &*get("")].concat(), Wanted::Ok(200)),
            ("a space before the first header", b"GET /livez HTTP/1.1\r\n Host: a\r\n\r\n".into(), Wanted::Bare(400)),
            ("a space before the colon", get("X : a\r\n"), Wanted::Bare(400)),
            ("a header without a colon", get("nonsense\r\n"), Wanted::Bare(400)),
            ("a header without a name", get(": a\r\n"), Wanted::Bare(400)),
            ("NUL in a header", get("X: a\0b\r\n"), Wanted::Bare(400)),
            ("NUL in a header's name", get("X\0: a\r\n"), Wanted::Bare(400)),
            ("NUL in the path", plain("GET", "/elections/aaaa\0bbbb", ""), Wanted::Bare(400)),
            (
                "no text in the path",
                b"GET /elections/aaaa\xff\xfebbbb HTTP/1.1\r\nHost: a\r\n\r\n".into(),
                Wanted::Bare(400),
            ),
            ("two spaces", plain("GET ", "/livez", ""), Wanted::Bare(400)),
            ("tabs", b"GET\t/livez\tHTTP/1.1\r\nHost: a\r\n\r\n".into(), Wanted::Bare(400)),
            ("a method that is no word", plain("G@T", "/livez", ""), Wanted::Bare(400)),
            ("HTTP/0.9", b"GET /livez\r\n\r\n".into(), Wanted::Bare(400)),
            ("HTTP/1.0", b"GET /livez HTTP/1.0\r\n\r\n".into(), Wanted::OkAndClosed(200)),
            ("HTTP/1.2", b"GET /livez HTTP/1.2\r\nHost: a\r\n\r\n".into(), Wanted::Bare(400)),
            ("HTTP/2 in the words of HTTP/1", b"GET /livez HTTP/2.0\r\nHost: a\r\n\r\n".into(), Wanted::Bare(400)),
            ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), Wanted::Closed),
            ("TLS", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(), &[7; 80]].concat(), Wanted::Bare(400)),
        ],
    )
    .await;
    let upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    check(&cluster.nodes[0], &[("an upgrade to HTTP/2, which is not taken", get(upgrade), Wanted::Ok(200))]).await;
    is_unharmed(&cluster).await;
}

/// Where two readers on the way could see two different requests, this one sees one, and takes nothing more from the
/// connection; or it sees none.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_hides_in_the_framing_of_another() {
    let cluster = node().await;
    let hidden = [b"14\r\n", CAMPAIGN, b"\r\n0\r\n\r\n", &*plain("GET", "/status", "")].concat();
    let both = "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n";
    let both_the_other_way = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n";
    let large = [b"100000\r\n".as_slice(), &[b' '; 0x10_0000], b"\r\n0\r\n\r\n"].concat();
    let old = format!("POST {ROOM}/campaign HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    let tail = |name: &str| [b"14\r\n", CAMPAIGN, b"\r\n0\r\n", name.as_bytes(), b": b\r\n\r\n"].concat();
    let by_chunks = "Transfer-Encoding: chunked\r\n";
    check(
        &cluster.nodes[0],
        &[
            ("chunks and a length", framed(both, &hidden), Wanted::OkAndClosed(200)),
            ("a length and chunks", framed(both_the_other_way, &hidden), Wanted::OkAndClosed(200)),
            ("a length twice", with_length("20\r\nContent-Length: 20"), Wanted::Ok(200)),
            ("two lengths", with_length("20\r\nContent-Length: 21"), Wanted::Bare(400)),
            ("two lengths in one", with_length("20, 20"), Wanted::Bare(400)),
            ("a length with a sign", with_length("+20"), Wanted::Bare(400)),
            ("a length below zero", with_length("-1"), Wanted::Bare(400)),
            ("a length in hex", with_length("0x14"), Wanted::Bare(400)),
            ("an empty length", with_length(""), Wanted::Bare(400)),
            ("a length with a fraction", with_length("20.0"), Wanted::Bare(400)),
            ("a length over 64 bits", with_length("99999999999999999999"), Wanted::Bare(400)),
            ("the longest length", with_length("18446744073709551615"), Wanted::Bare(431)),
            ("a length of 1 TiB", with_length("1099511627776"), Wanted::ErrorAndClosed(413, TOO_LARGE)),
            ("chunks in capitals", chunked("CHUNKED", "14"), Wanted::Ok(200)),
            ("chunks and then something", chunked("chunked, identity", "14"), Wanted::Bare(400)),
            ("no such coding", chunked("xchunked", "14"), Wanted::Bare(400)),
            ("only compressed", chunked("gzip", "14"), Wanted::Bare(400)),
            ("a coding after a control character", chunked("\u{b}chunked", "14"), Wanted::Bare(400)),
            ("a space before the colon", framed("Transfer-Encoding : chunked\r\n", &hidden), Wanted::Bare(400)),
            ("chunks in HTTP/1.0", [old.as_bytes(), &hidden].concat(), Wanted::Bare(400)),
            ("a chunk with an extension", chunked("chunked", "14;a=b"), Wanted::Ok(200)),
            ("a chunk of 2^68", chunked("chunked", "FFFFFFFFFFFFFFFFF"), Wanted::ErrorAndClosed(400, INVALID)),
            ("a chunk below zero", chunked("chunked", "-14"), Wanted::ErrorAndClosed(400, INVALID)),
            ("a chunk with a sign", chunked("chunked", "+14"), Wanted::ErrorAndClosed(400, INVALID)),
            ("a chunk in C", chunked("chunked", "0x14"), Wanted::ErrorAndClosed(400, INVALID)),
            ("a chunk without a size", chunked("chunked", ""), Wanted::ErrorAndClosed(400, INVALID)),
            ("a chunk that is longer than it says", chunked("chunked", "4"), Wanted::ErrorAndClosed(400, INVALID)),
            ("chunks over the limit", framed(by_chunks, large), Wanted::ErrorAndClosed(413, TOO_LARGE)),
            (
                "chunks with LF",
                framed(by_chunks, b"14\n{\"candidate_id\":\"a\"}\n0\n\n"),
                Wanted::ErrorAndClosed(400, INVALID),
            ),
            (
                "a long extension",
                chunked("chunked", &format!("14;{}", "e".repeat(70_000))),
                Wanted::ErrorAndClosed(400, INVALID),
            ),
            ("a trailer", framed(by_chunks, tail("X")), Wanted::Ok(200)),
            ("a long trailer", framed(by_chunks, tail(&"X".repeat(70_000))), Wanted::ErrorAndClosed(400, INVALID)),
        ],
    )
    .await;
    let hidden_in_a_get =
        plain("GET", "/livez", "Content-Length: 36\r\n\r\nGET /status HTTP/1.1\r\nHost: a\r\nX: y\r\n");
    check(&cluster.nodes[0], &[("a body where none belongs", hidden_in_a_get, Wanted::Ok(200))]).await;
    is_unharmed(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_campaign_is_refused_and_wins_nothing() {
    let cluster = node().await;
    let node = &cluster.nodes[0];
    let ttl = |text: &str| format!(r#"{{"candidate_id":"a","ttl_seconds":{text}}}"#).into_bytes();
    let invalid = Wanted::Error(400, INVALID);
    let invalid_ttl = Wanted::Error(400, "invalid_ttl");
    let utf_16: Vec<u8> = r#"{"candidate_id":"a"}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bodies: Vec<(Vec<u8>, Wanted)> = vec![
        (br#"{"candidate_id":"a","candidate_id":"b"}"#.into(), invalid),
        (br#"{"candidate_id":"a","ttl_seconds":5,"ttl_seconds":300}"#.into(), invalid),
        (br#"{"candidate_id":"a","\u0063andidate_id":"b"}"#.into(), invalid),
        (ttl("NaN"), invalid),
        (ttl("Infinity"), invalid),
        (ttl("1e309"), invalid),
        (ttl("-1e309"), invalid),
        (ttl("030"), invalid),
        (ttl("+30"), invalid),
        (ttl("0x1e"), invalid),
        (ttl("30.5"), invalid),
        (ttl("-5"), invalid_ttl),
        (ttl("-0"), invalid_ttl),
        (ttl("-0.0"), invalid_ttl),
        (ttl("9223372036854775807"), invalid_ttl),
        (ttl("9223372036854775808"), invalid_ttl),
        (ttl("-9223372036854775809"), invalid_ttl),
        (ttl("18446744073709551616"), invalid_ttl),
        (ttl("65541"), invalid_ttl),
        (ttl("4294967301"), invalid_ttl),
        (br#"{"candidate_id":"a","wait_seconds":-1}"#.into(), invalid),
        (br#"{"candidate_id":"a","wait_seconds":256}"#.into(), invalid),
        (br#"{"candidate_id":"a","wait_seconds":1e309}"#.into(), invalid),
        ("[".repeat(16_000).into(), invalid),
        (r#"{"a":"#.repeat(3_000).into(), invalid),
        (format!(r#"{{"candidate_id":"a","x":{}{}}}"#, "[".repeat(8_000), "]".repeat(8_000)).into(), invalid),
        (b"{\"candidate_id\":\"\xff\"}".into(), invalid),
        (b"{\"candidate_id\":\"\xc0\xaf\"}".into(), invalid),
        (b"{\"candidate_id\":\"\xed\xa0\x80\"}".into(), invalid),
        (b"{\"candidate_id\":\"a\",\"metadata\":\"\xf4\x90\x80\x80\"}".into(), invalid),
        (br#"{"candidate_id":"a","metadata":"\ud800"}"#.into(), invalid),
        (br#"{"candidate_id":"a","metadata":"\udc00\ud800"}"#.into(), invalid),
        (br#"{"candidate_id":"a\u0000"}"#.into(), invalid),
        (b"{\"candidate_id\":\"a\0\"}".into(), invalid),
        (b"{\"candidate_id\":\"a\"}\0".into(), invalid),
        (b"\xef\xbb\xbf{\"candidate_id\":\"a\"}".into(), invalid),
        (utf_16, invalid),
        (br#"{"candidate_id":"a",}"#.into(), invalid),
        (br#"{'candidate_id':'a'}"#.into(), invalid),
        (br#"{"candidate_id":"a"/**/}"#.into(), invalid),
        (br#"{"candidate_id":"a"}{"candidate_id":"b"}"#.into(), invalid),
        (br#"{"__proto__":{"candidate_id":"a"}}"#.into(), invalid),
        (br#"["candidate_id","a"]"#.into(), invalid),
        // A length that is longer than the body has its own test; this is one that is shorter.
        (br#"{"candidate_id":"a""#.into(), invalid),
    ];
    for (body, wanted) in &bodies {
        let request = framed(&format!("Content-Length: {}\r\n", body.len()), body);
        let (found, reply) = answer_to(node, &request).await;
        assert_eq!(found, *wanted, "{}: {reply:?}", String::from_utf8_lossy(&body[..body.len().min(80)]));
    }
    let caller = Caller::of(node).await;
    assert_eq!(caller.status("raw-bytes-room").await.body["status"], "vacant");

    // What is odd, and still JSON.
    for metadata in [r"\u0000", r"\ud83d\ude00", r"\u2028", "\u{10ffff}", r"</script>\u001b[2J"] {
        let body = format!(r#"{{"candidate_id":"a","metadata":"{metadata}"}}"#);
        let request = framed(&format!("Content-Length: {}\r\n", body.len()), &body);
        let (found, reply) = answer_to(node, &request).await;
        assert_eq!(found, Wanted::Ok(200), "{metadata}");
        let shown = &caller.status("raw-bytes-room").await.body["leader"]["metadata"];
        assert_eq!(*shown, serde_json::from_str::<Value>(&body).unwrap()["metadata"], "{metadata}");
        let token = reply.unwrap().json()["leader_token"].as_str().unwrap().to_owned();
        assert_eq!(caller.resign("raw-bytes-room", &token).await.status, 200);
    }
    is_unharmed(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_means_one_room_or_none() {
    let cluster = node().await;
    let invalid = Wanted::Error(400, INVALID);
    let not_found = Wanted::Error(404, "not_found");
    for (path, wanted) in [
        ("/elections/../livez", not_found),
        ("/elections/./raw-bytes-room", not_found),
        ("/elections/raw-bytes-room/campaign/..", not_found),
        ("/../../etc/passwd", not_found),
        ("//elections/raw-bytes-room", not_found),
        ("/elections//raw-bytes-room", not_found),
        ("/elections/raw-bytes-room/", not_found),
        ("/ELECTIONS/raw-bytes-room", not_found),
        ("/%65lections/raw-bytes-room", not_found),
        ("/elections%2Fraw-bytes-room", not_found),
        ("*", not_found),
        ("/elections/raw%2Fbytes%2Froom", invalid),
        ("/elections/raw-bytes-room%2Fwatch", invalid),
        ("/elections/%2e%2e%2f%2e%2e%2flivez", invalid),
        ("/elections/..%2f..%2flivez", invalid),
        ("/elections/%252e%252e%252f", invalid),
        ("/elections/raw-bytes-room%00", invalid),
        ("/elections/raw-bytes-room%0d%0aX:y", invalid),
        ("/elections/raw-bytes-room%20", invalid),
        ("/elections/raw-bytes-room.", invalid),
        ("/elections/raw-bytes-room;v=1", invalid),
        ("/elections/raw\\bytes\\room", invalid),
        ("/elections/raw-bytes-room%", invalid),
        ("/elections/raw-bytes-room%2", invalid),
        ("/elections/raw-bytes-room%zz", invalid),
        ("/elections/%c0%af%c0%af%c0%af%c0%af", invalid),
        ("/elections/%ed%a0%80aaaaaa", invalid),
        ("/elections/ｒａｗ-bytes", invalid),
        ("/elections/raw-bytes-room?consistency=local%00", invalid),
        ("/elections/raw-bytes-room?consistency=%ff", invalid),
    ] {
        check(&cluster.nodes[0], &[(path, plain("GET", path, ""), wanted)]).await;
    }
    for (path, room) in [
        ("/elections/raw-bytes-room", "raw-bytes-room"),
        ("/elections/raw%2dbytes%2Droom", "raw-bytes-room"),
        ("/elections/RAW-bytes-room", "RAW-bytes-room"),
        ("/elections/raw-bytes-room#x", "raw-bytes-room"),
        ("/elections/raw-bytes-room?", "raw-bytes-room"),
        ("http://elsewhere/elections/raw-bytes-room", "raw-bytes-room"),
    ] {
        let (found, reply) = answer_to(&cluster.nodes[0], &plain("GET", path, "")).await;
        assert_eq!((found, &reply.unwrap().json()["election_id"]), (Wanted::Ok(200), &json!(room)), "{path}");
    }
    is_unharmed(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_and_kinds_of_content_are_refused() {
    let cluster = node().await;
    let node = &cluster.nodes[0];
    for method in ["OPTIONS", "TRACE", "PUT", "PATCH", "DELETE", "PROPFIND", "get", &"X".repeat(1_000)] {
        let (found, reply) = answer_to(node, &plain(method, ROOM, "X-Canary: do-not-echo\r\n")).await;
        let reply = reply.unwrap();
        assert_eq!(found, Wanted::Error(405, "method_not_allowed"), "{method}: {reply:?}");
        assert_eq!(reply.header("allow"), Some("GET,HEAD"), "{method}");
        assert!(!String::from_utf8_lossy(&reply.body).contains("do-not-echo"), "{method}");
    }
    check(
        node,
        &[
            ("OPTIONS of the whole node", plain("OPTIONS", "*", ""), Wanted::Error(404, "not_found")),
            ("a tunnel", plain("CONNECT", "127.0.0.1:7401", ""), Wanted::Error(404, "not_found")),
        ],
    )
    .await;
    let (found, get) = answer_to(node, &plain("GET", ROOM, "")).await;
    let (found_head, head) = answer_to(node, &plain("HEAD", ROOM, "")).await;
    assert_eq!((found, found_head), (Wanted::Ok(200), Wanted::Ok(200)));
    assert_eq!(head.unwrap().header("content-length"), get.unwrap().header("content-length"));

    for content_type in [
        "text/plain",
        "application/xml",
        "",
        "json",
        "application/jsonp",
        "application/json, text/plain",
        "multipart/form-data; boundary=x",
        "text/plain\r\nContent-Type: application/json",
    ] {
        let request = format!(
            "POST {ROOM}/campaign HTTP/1.1\r\nHost: a\r\nContent-Type: {content_type}\r\nContent-Length: 20\r\n\r\n"
        );
        let request = [request.as_bytes(), CAMPAIGN].concat();
        check(node, &[(content_type, request, Wanted::Error(415, NOT_JSON))]).await;
    }
    assert_eq!(Caller::of(node).await.status("raw-bytes-room").await.body["status"], "vacant");

    // Asked whether to go on, the node says so, or says at once why not.
    let mut line = Line::open(node).await;
    line.say(&framed("Content-Length: 20\r\nExpect: 100-continue\r\n", "")).await;
    assert_eq!(line.hear(false).await.unwrap().status, 100);
    line.say(CAMPAIGN).await;
    assert_eq!(line.hear(false).await.unwrap().status, 200);
    let too_large = framed("Content-Length: 99999999\r\nExpect: 100-continue\r\n", "");
    check(node, &[("too much, announced", too_large, Wanted::ErrorAndClosed(413, TOO_LARGE))]).await;
    is_unharmed(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_one_go_are_answered_in_their_order() {
    let cluster = node().await;
    let mut line = Line::open(&cluster.nodes[0]).await;
    let mut all = Vec::new();
    for round in 0..50 {
        all.extend(with_length("20"));
        all.extend(plain("GET", &format!("/nothing/{round}"), ""));
        all.extend(plain("HEAD", ROOM, ""));
        all.extend(plain("GET", ROOM, ""));
    }
    all.extend(plain("GET", "/livez", "Connection: close\r\n"));
    all.extend(plain("GET", "/status", ""));
    line.say(&all).await;
    let mut ids = std::collections::BTreeSet::new();
    for round in 0..50 {
        let campaign = line.hear(false).await.unwrap();
        let expected = if round == 0 { "leader" } else { "follower" };
        assert_eq!((campaign.status, &campaign.json()["status"]), (200, &json!(expected)), "{round}");
        let replies =
            [line.hear(false).await.unwrap(), line.hear(true).await.unwrap(), line.hear(false).await.unwrap()];
        assert_eq!(replies.each_ref().map(|reply| reply.status), [404, 200, 200], "{round}");
        ids.extend(replies.iter().chain([&campaign]).map(|reply| reply.header("x-request-id").unwrap().to_owned()));
    }
    assert_eq!(ids.len(), 200, "each has an id of its own");
    assert_eq!(line.hear(false).await.unwrap().json(), json!({"status": "ok"}));
    assert!(line.hear(false).await.is_none(), "nothing after the request that asked for the end");
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
        let mut line = Line::open(node).await;
        line.say(&bytes).await;
        if name == "a campaign that waits" {
            // It is in line once those who come after it have been answered.
            for _ in 0..5 {
                caller.campaign("half-closed-room", json!({"candidate_id": "passer-by"})).await.is_follower();
            }
        }
        line.stream.shutdown().await.unwrap();
        let closed_at = Instant::now();
        let reply = line.hear(false).await;
        assert_eq!(reply.as_ref().map(|reply| reply.status), wanted, "{name}: {reply:?}");
        assert!(line.hear(false).await.is_none(), "{name}");
        assert!(closed_at.elapsed() < Duration::from_secs(5), "{name}: {:?}", closed_at.elapsed());
    }
    // Nobody is left in line.
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
        let mut line = Line::open(node).await;
        let opened_at = Instant::now();
        line.say(start).await;
        let (mut reading, mut writing) = line.stream.into_split();
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
        let mut line = Line::open(node).await;
        assert!(line.hear(false).await.is_none());
        assert!(beginning.elapsed() >= Duration::from_secs(9), "{:?}", beginning.elapsed());
    });
    // Those who have asked once, and then keep the connection for nothing.
    let idle_ones = (0..20).map(|_| async {
        let mut line = Line::open(node).await;
        line.say(&plain("GET", "/livez", "")).await;
        assert_eq!(line.hear(false).await.unwrap().status, 200);
        assert!(line.hear(false).await.is_none());
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
