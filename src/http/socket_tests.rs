//! Over a real connection: what only shows on the wire.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Sends bytes to a new server, and gives all that comes back until it closes the connection.
async fn talk(bytes: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = build_router(service(), HttpSettings::default(), Arc::new(SystemRandom));
    let serve = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>());
    let server = tokio::spawn(serve.into_future());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A server that closes with bytes unread resets the connection; what it said before still counts.
    let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.unwrap();
    server.abort();
    String::from_utf8(answer).unwrap()
}

fn statuses(answer: &str) -> Vec<&str> {
    answer.match_indices("HTTP/1.1 ").map(|(at, prefix)| &answer[at + prefix.len()..at + prefix.len() + 3]).collect()
}

#[tokio::test]
async fn errors_are_framed_so_that_the_connection_can_go_on() {
    let answer = talk(
        b"GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n\
          HEAD /elections/short HTTP/1.1\r\nhost: a\r\n\r\n\
          DELETE /elections HTTP/1.1\r\nhost: a\r\n\r\n\
          POST /elections HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nbody\
          GET /elections/short HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert_eq!(statuses(&answer), ["404", "400", "405", "201", "400"], "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    assert!(body[..length].starts_with("{\"error\":") && body[length..].starts_with("HTTP/1.1 400"), "{answer}");
}

#[tokio::test]
async fn a_chunked_body_over_the_limit_is_too_large() {
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    let head = "POST /elections/nightly-report/renew HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let answer = talk(format!("{head}{}", chunk.repeat(5)).as_bytes()).await;
    assert_eq!(statuses(&answer), ["413"], "{answer}");
    assert!(answer.contains("\"code\":\"payload_too_large\""));
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    // This one is answered by hyper, before any route: it has a status, but no body and no request id.
    let answer = talk(format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(1 << 20)).as_bytes()).await;
    assert_eq!(statuses(&answer), ["431"], "{answer}");
}
