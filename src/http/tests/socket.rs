//! Requests over a real connection, for faults that only show in the bytes.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::*;

/// Sends bytes to a new server, and gives everything that it sends back until it closes the connection.
async fn talk(bytes: &[u8]) -> String {
    let (address, server) = serve(service(), HttpSettings::default()).await;
    let mut stream = call([127, 0, 0, 1], address).await;
    stream.write_all(bytes).await.unwrap();
    let answer = rest(&mut stream).await;
    server.abort();
    answer
}

/// A new server on a free port.
async fn serve(service: RoomService, settings: HttpSettings) -> (SocketAddr, JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = build_router(service, settings, Arc::new(SystemRandom));
    let serve = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>());
    (address, tokio::spawn(serve.into_future()))
}

async fn call(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Everything that arrives until the connection is closed.
async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A server that closes with unread bytes resets the connection. What arrived before that still counts.
    let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

fn statuses(answer: &str) -> Vec<&str> {
    answer.match_indices("HTTP/1.1 ").map(|(at, prefix)| &answer[at + prefix.len()..at + prefix.len() + 3]).collect()
}

#[tokio::test]
async fn a_connection_can_be_used_after_an_error() {
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
async fn a_head_over_the_limit_is_answered_with_431() {
    // hyper answers this request before any route: with a status, and without a body or a request id.
    let answer = talk(format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(1 << 20)).as_bytes()).await;
    assert_eq!(statuses(&answer), ["431"], "{answer}");
}

/// The head of a request. It asks the server to say when it waits for the body.
fn post_head(path: &str, content_length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nconnection: close\r\n\
         expect: 100-continue\r\ncontent-length: {content_length}\r\n\r\n"
    )
}

/// Sends a whole request, and gives the status and the body of the response.
async fn ask(from: [u8; 4], to: SocketAddr, path: &str, body: Value) -> (String, Value) {
    let body = body.to_string();
    let mut stream = call(from, to).await;
    stream.write_all((post_head(path, body.len()) + &body).as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    let (_, body) = answer.split_once("\r\n\r\n{").unwrap_or_else(|| panic!("{answer}"));
    (statuses(&answer).last().unwrap().to_string(), serde_json::from_str(&format!("{{{body}")).unwrap())
}

#[tokio::test]
async fn a_holder_can_renew_while_the_bodies_of_other_requests_never_arrive() {
    let (service, _folder) = founded_service();
    let body_deadline = Duration::from_secs(3);
    let settings = HttpSettings { requests_in_flight_max: 4, body_deadline, ..Default::default() };
    let (address, server) = serve(service, settings).await;
    let (stranger, holder) = ([127, 0, 1, 1], [127, 0, 1, 2]);
    let (_, won) = ask(holder, address, &format!("{ROOM}/campaign"), json!({"candidate_id": "worker-a"})).await;

    let mut half_sent = Vec::new();
    for _ in 0..4 {
        let mut stream = call(stranger, address).await;
        stream.write_all(post_head("/elections/aaaaaaaa/renew", 100).as_bytes()).await.unwrap();
        half_sent.push(stream);
    }
    for stream in &mut half_sent {
        let mut waits = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
        stream.read_exact(&mut waits).await.unwrap();
        assert_eq!(waits, *b"HTTP/1.1 100 Continue\r\n\r\n", "the server waits for the body");
    }
    let renewal = ask(holder, address, &format!("{ROOM}/renew"), json!({"leader_token": won["leader_token"]})).await;
    assert_eq!((&*renewal.0, &renewal.1["leader"]["term"]), ("200", &won["leader"]["term"]), "{}", renewal.1);
    for stream in &mut half_sent {
        let answer = rest(stream).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("the body must arrive in time"), "{answer}");
    }
    server.abort();
}
