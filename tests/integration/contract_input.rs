//! Which input the client listener accepts, and which it answers with an error. One node, one kind of input a test.

use std::convert::Infallible;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::caller::{Answer, one_node};
use crate::raw_connection::send_head;

/// What a grant or a renewal with this TTL must say.
#[track_caller]
fn promises(answer: &Answer, ttl_millis: u64) {
    let found = (&answer.body["valid_for_ms"], &answer.body["renew_after_ms"]);
    assert_eq!(found, (&json!(ttl_millis), &json!(ttl_millis / 2)), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ttl_is_a_whole_number_from_5_to_300() {
    let (_cluster, node) = one_node(&[]).await;
    for (count, (ttl, wanted)) in [
        ("5", Ok(5_000)),
        ("300", Ok(300_000)),
        ("30.0", Ok(30_000)),
        ("3e1", Ok(30_000)),
        ("null", Ok(30_000)),
        ("4", Err("invalid_ttl")),
        ("301", Err("invalid_ttl")),
        ("0", Err("invalid_ttl")),
        ("-1", Err("invalid_ttl")),
        ("1e300", Err("invalid_ttl")),
        ("18446744073709551615", Err("invalid_ttl")),
        ("\"30\"", Err("invalid_input")),
        ("30.5", Err("invalid_input")),
        ("1e309", Err("invalid_input")),
        ("true", Err("invalid_input")),
        ("[30]", Err("invalid_input")),
    ]
    .into_iter()
    .enumerate()
    {
        let room = format!("ttl-limits-{count}");
        let path = format!("/elections/{room}/campaign");
        let answer = node.post_text(&path, &format!(r#"{{"candidate_id":"a","ttl_seconds":{ttl}}}"#)).await;
        match wanted {
            Ok(ttl_millis) => {
                promises(&answer, ttl_millis);
                let body = format!(r#"{{"leader_token":"{}","ttl_seconds":{ttl}}}"#, answer.held(&room).token);
                promises(&node.post_text(&format!("/elections/{room}/renew"), &body).await, ttl_millis);
            }
            Err(code) => {
                answer.is_error(400, code);
                assert_eq!(node.status(&room).await.body["status"], "vacant", "{ttl}");
            }
        }
    }
    let held = node.campaign("renew-limits", json!({"candidate_id": "a"})).await.held("renew-limits");
    for (ttl, code) in
        [("4", "invalid_ttl"), ("301", "invalid_ttl"), ("-1", "invalid_ttl"), ("\"30\"", "invalid_input")]
    {
        let body = format!(r#"{{"leader_token":"{}","ttl_seconds":{ttl}}}"#, held.token);
        node.post_text("/elections/renew-limits/renew", &body).await.is_error(400, code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_is_a_whole_number_up_to_60() {
    let (_cluster, node) = one_node(&[]).await;
    for wait in ["61", "-1", "0.5", "\"5\"", "1e309", "{}"] {
        let body = format!(r#"{{"candidate_id":"a","wait_seconds":{wait}}}"#);
        node.post_text("/elections/wait-limits/campaign", &body).await.is_error(400, "invalid_input");
    }
    assert_eq!(node.status("wait-limits").await.body["status"], "vacant");
    for wait in ["0", "60", "null"] {
        let body = format!(r#"{{"candidate_id":"a","wait_seconds":{wait}}}"#);
        let won = node.post_text("/elections/wait-limits/campaign", &body).await.held("wait-limits");
        node.resign("wait-limits", &won.token).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_with_an_unknown_consistency_is_an_error() {
    let (_cluster, node) = one_node(&[]).await;
    let held = node.win("bad-query-room", "worker-a", 30).await;
    for query in ["?consistency=local", "?consistency=linearizable", "?unknown=1", ""] {
        let answer = node.get(&format!("/elections/bad-query-room{query}")).await;
        assert_eq!((answer.status, &answer.body["leader"]["term"]), (200, &json!(held.term)), "{query}");
        assert_eq!(answer.header("x-quorate-node"), "n1");
    }
    for query in
        ["?consistency=", "?consistency=Local", "?consistency=eventual", "?consistency=local&consistency=local"]
    {
        node.get(&format!("/elections/bad-query-room{query}")).await.is_error(400, "invalid_input");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_id_has_8_to_64_letters_digits_dashes_and_underscores() {
    let (_cluster, node) = one_node(&[]).await;
    let held = node.win("bad-id-room", "worker-a", 30).await;
    let long = "r".repeat(65);
    for id in
        ["seven77", &long, "with%20space", "with.a.dot", "%C3%A4%C3%B6%C3%BC%C3%A4%C3%B6", "%ff%ff%ff%ff%ff%ff%ff%ff"]
    {
        node.status(id).await.is_error(400, "invalid_input");
        node.get(&format!("/elections/{id}/watch")).await.is_error(400, "invalid_input");
        node.campaign(id, json!({"candidate_id": "a"})).await.is_error(400, "invalid_input");
        node.renew(id, &held.token).await.is_error(400, "invalid_input");
        node.resign(id, &held.token).await.is_error(400, "invalid_input");
    }
    // The id is decoded before it is compared, so an encoded letter is the same as the letter.
    assert_eq!(node.status("bad%2Did-roo%6D").await.body["leader"]["term"], held.term);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_id_has_1_to_64_allowed_characters() {
    let (_cluster, node) = one_node(&[]).await;
    let long = "c".repeat(65);
    for candidate in
        [json!(""), json!(long), json!("two words"), json!("a/b"), json!("ä"), json!("a\n"), json!(7), Value::Null]
    {
        node.campaign("bad-candidates", json!({"candidate_id": candidate})).await.is_error(400, "invalid_input");
    }
    let longest = "c".repeat(64);
    for candidate in ["a", "A-Z.a_z:0@9", &longest] {
        let won = node.campaign("good-candidates", json!({"candidate_id": candidate})).await.held("good-candidates");
        node.resign("good-candidates", &won.token).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_a_text_of_up_to_1024_characters() {
    let (_cluster, node) = one_node(&[]).await;
    for (metadata, status) in [
        (json!("m".repeat(1024)), 200),
        (json!("\u{1f5f3}".repeat(1024)), 200),
        (json!("m".repeat(1025)), 400),
        (json!(7), 400),
        (json!({"a": 1}), 400),
    ] {
        let room = format!("metadata-{}", uuid::Uuid::new_v4());
        let answer = node.campaign(&room, json!({"candidate_id": "a", "metadata": metadata})).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(status == 200, node.status(&room).await.body["leader"]["metadata"] == metadata);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_json_object_with_the_required_fields_is_an_error() {
    let (_cluster, node) = one_node(&[]).await;
    let held = node.win("bad-body-room", "worker-a", 30).await;
    for action in ["campaign", "renew", "resign"] {
        let path = format!("/elections/bad-body-room/{action}");
        for body in
            ["", "{", "[]", "null", "7", "{}", "{\"candidate_id\":\"a\",\"leader_token\":\"\\ud800\"}", "\u{feff}{}"]
        {
            node.post_text(&path, body).await.is_error(400, "invalid_input");
        }
        for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
            let request = node.request(Method::POST, &path).header("content-type", content_type).body("{}");
            node.send(request).await.is_error(415, "unsupported_media_type");
        }
        node.send(node.request(Method::POST, &path).body("{}")).await.is_error(415, "unsupported_media_type");
    }
    assert_eq!(node.status("bad-body-room").await.body["leader"]["term"], held.term);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_routes_and_methods_are_answered_with_errors_in_json() {
    let (_cluster, node) = one_node(&[]).await;
    for path in [
        "/",
        "/election",
        "/elections/",
        "/elections/room-room/",
        "/elections/room-room/campaigns",
        "/metrics",
        "/peer/v1/identity",
    ] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            node.send(node.request(method, path)).await.is_error(404, "not_found");
        }
    }
    for (path, allowed) in [
        ("/elections", "POST"),
        ("/elections/room-room", "GET,HEAD"),
        ("/elections/room-room/campaign", "POST"),
        ("/elections/room-room/renew", "POST"),
        ("/elections/room-room/resign", "POST"),
        ("/elections/room-room/watch", "GET,HEAD"),
        ("/status", "GET,HEAD"),
        ("/openapi.json", "GET,HEAD"),
    ] {
        for method in [Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS, Method::TRACE] {
            let answer = node.send(node.request(method, path)).await;
            answer.is_error(405, "method_not_allowed");
            assert_eq!(answer.header("allow").replace(' ', ""), allowed, "{path}");
        }
        let head = node.send(node.request(Method::HEAD, path)).await;
        assert_eq!((head.status, head.text.as_str()), (if allowed == "POST" { 405 } else { 200 }, ""), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_at_most_16_kib() {
    let (_cluster, node) = one_node(&[]).await;
    for action in ["campaign", "renew", "resign"] {
        let path = format!("/elections/body-limits/{action}");
        let padded = |length: usize| {
            let start = format!(r#"{{"candidate_id":"a","leader_token":"{}"}}"#, "A".repeat(43));
            format!("{start}{}", " ".repeat(length - start.len()))
        };
        let fits = node.post_text(&path, &padded(16 << 10)).await;
        assert_eq!(fits.status, if action == "campaign" { 200 } else { 404 }, "{}", fits.text);
        let too_long = padded((16 << 10) + 1);
        node.post_text(&path, &too_long).await.is_error(413, "payload_too_large");
        // Without a content length, the node notices the size only while it reads the body.
        let pieces: Vec<_> =
            too_long.as_bytes().chunks(1000).map(|piece| Ok::<_, Infallible>(piece.to_vec())).collect();
        let body = reqwest::Body::wrap_stream(futures::stream::iter(pieces));
        let request = node.request(Method::POST, &path).header("content-type", "application/json").body(body);
        node.send(request).await.is_error(413, "payload_too_large");
        // With a content length that is too large, the node answers before any of the body arrives.
        let mut stream = send_head(&node.url, &format!("POST {path}"), "", 1 << 40).await;
        let mut start = [0; 12];
        tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut start)).await.unwrap().unwrap();
        assert_eq!(&start, b"HTTP/1.1 413");
    }
}
