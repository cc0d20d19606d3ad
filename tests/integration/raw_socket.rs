//! Bytes that no HTTP library sends. Each gets exactly one kind of answer, or a closed connection. The node then serves
//! on, and nothing in it has panicked.

use serde_json::{Value, json};

use crate::caller::Caller;
use crate::raw_connection::{INVALID, NOT_JSON, RawConnection, TOO_LARGE, Wanted, answer_to, check};
use crate::raw_requests::{CAMPAIGN, ROOM, framed, is_unharmed, node, plain, with_length};

fn chunked(coding: &str, size: &str) -> Vec<u8> {
    let body = [size.as_bytes(), b"\r\n", CAMPAIGN, b"\r\n0\r\n\r\n"].concat();
    framed(&format!("Transfer-Encoding: {coding}\r\n"), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_http_is_answered_with_a_bare_status_and_the_connection_is_closed() {
    let cluster = node().await;
    let many = |count: usize| (0..count).map(|number| format!("X-{number}: 1\r\n")).collect::<String>();
    let big = |bytes: usize| format!("X: {}\r\n", "x".repeat(bytes));
    let get = |headers: &str| plain("GET", "/livez", headers);
    check(
        &cluster.nodes[0],
        &[
            ("a head of nearly 16 KiB", get(&big(16_000)), Wanted::Ok(200)),
            ("a head of more than 16 KiB", get(&big(17_000)), Wanted::Bare(431)),
            (
                "an unfinished head of more than 16 KiB",
                format!("GET /livez HTTP/1.1\r\nX: {}", "x".repeat(17_000)).into(),
                Wanted::Bare(431),
            ),
            (
                "an unfinished head of 1 MiB",
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
                "a path that is not UTF-8",
                b"GET /elections/aaaa\xff\xfebbbb HTTP/1.1\r\nHost: a\r\n\r\n".into(),
                Wanted::Bare(400),
            ),
            ("two spaces", plain("GET ", "/livez", ""), Wanted::Bare(400)),
            ("tabs", b"GET\t/livez\tHTTP/1.1\r\nHost: a\r\n\r\n".into(), Wanted::Bare(400)),
            ("a method with an invalid character", plain("G@T", "/livez", ""), Wanted::Bare(400)),
            ("HTTP/0.9", b"GET /livez\r\n\r\n".into(), Wanted::Bare(400)),
            ("HTTP/1.0", b"GET /livez HTTP/1.0\r\n\r\n".into(), Wanted::OkAndClosed(200)),
            ("HTTP/1.2", b"GET /livez HTTP/1.2\r\nHost: a\r\n\r\n".into(), Wanted::Bare(400)),
            ("HTTP/2 in an HTTP/1 request line", b"GET /livez HTTP/2.0\r\nHost: a\r\n\r\n".into(), Wanted::Bare(400)),
            ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), Wanted::Closed),
            ("TLS", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(), &[7; 80]].concat(), Wanted::Bare(400)),
        ],
    )
    .await;
    let upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    check(&cluster.nodes[0], &[("an upgrade to HTTP/2, which the node ignores", get(upgrade), Wanted::Ok(200))]).await;
    is_unharmed(&cluster).await;
}

/// If a proxy and the node could disagree where a request ends, a second request could hide in the first. In such a
/// case the node answers at most one request, and then closes the connection.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_can_hide_in_the_framing_of_another() {
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
            ("a negative length", with_length("-1"), Wanted::Bare(400)),
            ("a length in hex", with_length("0x14"), Wanted::Bare(400)),
            ("an empty length", with_length(""), Wanted::Bare(400)),
            ("a length with a fraction", with_length("20.0"), Wanted::Bare(400)),
            ("a length over 64 bits", with_length("99999999999999999999"), Wanted::Bare(400)),
            ("the longest length", with_length("18446744073709551615"), Wanted::Bare(431)),
            ("a length of 1 TiB", with_length("1099511627776"), Wanted::ErrorAndClosed(413, TOO_LARGE)),
            ("chunks in capitals", chunked("CHUNKED", "14"), Wanted::Ok(200)),
            ("chunked is not the last coding", chunked("chunked, identity", "14"), Wanted::Bare(400)),
            ("an unknown coding", chunked("xchunked", "14"), Wanted::Bare(400)),
            ("only compressed", chunked("gzip", "14"), Wanted::Bare(400)),
            ("a coding after a control character", chunked("\u{b}chunked", "14"), Wanted::Bare(400)),
            ("a space before the colon", framed("Transfer-Encoding : chunked\r\n", &hidden), Wanted::Bare(400)),
            ("chunks in HTTP/1.0", [old.as_bytes(), &hidden].concat(), Wanted::Bare(400)),
            ("a chunk with an extension", chunked("chunked", "14;a=b"), Wanted::Ok(200)),
            (
                "a chunk of more than 64 bits",
                chunked("chunked", "FFFFFFFFFFFFFFFFF"),
                Wanted::ErrorAndClosed(400, INVALID),
            ),
            ("a negative chunk size", chunked("chunked", "-14"), Wanted::ErrorAndClosed(400, INVALID)),
            ("a chunk with a sign", chunked("chunked", "+14"), Wanted::ErrorAndClosed(400, INVALID)),
            ("a chunk size with 0x", chunked("chunked", "0x14"), Wanted::ErrorAndClosed(400, INVALID)),
            ("a chunk without a size", chunked("chunked", ""), Wanted::ErrorAndClosed(400, INVALID)),
            ("a chunk that is longer than its size", chunked("chunked", "4"), Wanted::ErrorAndClosed(400, INVALID)),
            ("chunks over the limit", framed(by_chunks, large), Wanted::ErrorAndClosed(413, TOO_LARGE)),
            (
                "chunks with LF only",
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
    check(&cluster.nodes[0], &[("a GET with a body", hidden_in_a_get, Wanted::Ok(200))]).await;
    is_unharmed(&cluster).await;
}

/// Bodies that are no valid campaign, each with the expected answer.
fn bad_bodies() -> Vec<(Vec<u8>, Wanted)> {
    let ttl = |text: &str| format!(r#"{{"candidate_id":"a","ttl_seconds":{text}}}"#).into_bytes();
    let invalid = Wanted::Error(400, INVALID);
    let invalid_ttl = Wanted::Error(400, "invalid_ttl");
    let utf_16: Vec<u8> = r#"{"candidate_id":"a"}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
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
        // Here the content length is shorter than the object. Another test has one that is longer than the body.
        (br#"{"candidate_id":"a""#.into(), invalid),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_valid_campaign_is_an_error_and_wins_nothing() {
    let cluster = node().await;
    let node = &cluster.nodes[0];
    for (body, wanted) in &bad_bodies() {
        let request = framed(&format!("Content-Length: {}\r\n", body.len()), body);
        let (found, reply) = answer_to(node, &request).await;
        assert_eq!(found, *wanted, "{}: {reply:?}", String::from_utf8_lossy(&body[..body.len().min(80)]));
    }
    let caller = Caller::of(node).await;
    assert_eq!(caller.status("raw-bytes-room").await.body["status"], "vacant");
    is_unharmed(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unusual_metadata_in_valid_json_is_accepted() {
    let cluster = node().await;
    let node = &cluster.nodes[0];
    let caller = Caller::of(node).await;
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
async fn a_path_names_exactly_one_room_or_none() {
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
async fn other_methods_and_content_types_are_rejected() {
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
            ("OPTIONS *", plain("OPTIONS", "*", ""), Wanted::Error(404, "not_found")),
            ("CONNECT", plain("CONNECT", "127.0.0.1:7401", ""), Wanted::Error(404, "not_found")),
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

    // A request with `Expect: 100-continue` gets 100, or the error at once.
    let mut connection = RawConnection::open(node).await;
    connection.send(&framed("Content-Length: 20\r\nExpect: 100-continue\r\n", "")).await;
    assert_eq!(connection.receive(false).await.unwrap().status, 100);
    connection.send(CAMPAIGN).await;
    assert_eq!(connection.receive(false).await.unwrap().status, 200);
    let too_large = framed("Content-Length: 99999999\r\nExpect: 100-continue\r\n", "");
    check(node, &[("a length over the limit", too_large, Wanted::ErrorAndClosed(413, TOO_LARGE))]).await;
    is_unharmed(&cluster).await;
}
