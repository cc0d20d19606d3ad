//! Connections on which a test sends any bytes, and reads what comes back.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Node;

/// The deadline for everything here. The node's own timeouts are 10 s.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The expected answer, and whether the connection can be used again after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A success.
    Ok(u16),
    /// A success, then the node closes the connection.
    OkAndClosed(u16),
    /// An error with a code of the contract.
    Error(u16, &'static str),
    /// The same, then the node closes the connection, because it cannot tell where the next request begins.
    ErrorAndClosed(u16, &'static str),
    /// A status without a body, then the node closes the connection. This is hyper's own answer: no route has seen the
    /// request.
    Bare(u16),
    /// The node closes the connection without an answer.
    Closed,
}

/// A complete answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// A connection that carries whatever bytes the test sends.
pub struct RawConnection {
    pub stream: TcpStream,
    unread: Vec<u8>,
}

impl RawConnection {
    pub async fn open(node: &Node) -> RawConnection {
        let address = node.url().strip_prefix("http://").unwrap().to_owned();
        RawConnection { stream: TcpStream::connect(address).await.unwrap(), unread: Vec::new() }
    }

    /// Sends bytes. An error is ignored: a node that has already answered may close before the rest arrives.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// One answer, or `None` if the node has closed the connection.
    pub async fn receive(&mut self, is_head: bool) -> Option<Reply> {
        tokio::time::timeout(PATIENCE, self.read_reply(is_head)).await.expect("an answer or the end of the connection")
    }

    async fn read_reply(&mut self, is_head: bool) -> Option<Reply> {
        let head_end = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more().await?;
        };
        let head = String::from_utf8(self.unread.drain(..head_end).collect()).unwrap();
        let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).unwrap().parse().unwrap();
        let mut reply = Reply { status, head, body: Vec::new() };
        let length = match reply.header("content-length") {
            Some(length) if !is_head => length.parse().unwrap(),
            _ => 0,
        };
        while self.unread.len() < length {
            self.read_more().await.expect("the whole body");
        }
        reply.body = self.unread.drain(..length).collect();
        Some(reply)
    }

    async fn read_more(&mut self) -> Option<()> {
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece).await {
            Ok(count @ 1..) => {
                self.unread.extend_from_slice(&piece[..count]);
                Some(())
            }
            // The node has closed the connection. It is an error if bytes of ours were unread.
            Ok(0) | Err(_) => None,
        }
    }

    /// Whether another request on this connection is answered.
    async fn goes_on(&mut self) -> bool {
        self.send(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        match self.receive(false).await {
            Some(reply) => {
                assert_eq!((reply.status, reply.json()), (200, json!({"status": "ok"})), "{reply:?}");
                true
            }
            None => false,
        }
    }
}

/// The answer to `bytes` on a new connection.
pub async fn answer_to(node: &Node, bytes: &[u8]) -> (Wanted, Option<Reply>) {
    let mut connection = RawConnection::open(node).await;
    connection.send(bytes).await;
    let Some(reply) = connection.receive(bytes.starts_with(b"HEAD ")).await else { return (Wanted::Closed, None) };
    let goes_on = connection.goes_on().await;
    let request_id = reply.header("x-request-id");
    let found = match (reply.status, request_id) {
        (status, None) => {
            assert!(!goes_on && reply.body.is_empty(), "{reply:?}");
            Wanted::Bare(status)
        }
        (status @ 200..300, Some(_)) => {
            if goes_on {
                Wanted::Ok(status)
            } else {
                Wanted::OkAndClosed(status)
            }
        }
        (status, Some(id)) => {
            let body = reply.json();
            assert_eq!(body["request_id"], id, "{reply:?}");
            let code = CODES.into_iter().find(|code| body["code"] == **code).unwrap_or_else(|| panic!("{reply:?}"));
            if goes_on { Wanted::Error(status, code) } else { Wanted::ErrorAndClosed(status, code) }
        }
    };
    (found, Some(reply))
}

/// The error codes that raw requests can lead to.
const CODES: [&str; 6] = [INVALID, "invalid_ttl", "not_found", "method_not_allowed", TOO_LARGE, NOT_JSON];
pub const INVALID: &str = "invalid_input";
pub const TOO_LARGE: &str = "payload_too_large";
pub const NOT_JSON: &str = "unsupported_media_type";

/// Sends each request on a connection of its own, and checks the answer.
pub async fn check(node: &Node, cases: &[(&str, Vec<u8>, Wanted)]) {
    for (name, bytes, wanted) in cases {
        let (found, reply) = answer_to(node, bytes).await;
        assert_eq!(found, *wanted, "{name}: {reply:?}");
    }
}

/// Sends the head of a request on a new connection. Each header in `headers` ends with CR LF.
pub async fn send_head(url: &str, request_line: &str, headers: &str, body_bytes: usize) -> TcpStream {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{request_line} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {body_bytes}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Sends a request on a new connection, which the test can then close in any way.
pub async fn send_raw(url: &str, request_line: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = send_head(url, request_line, headers, body.len()).await;
    stream.write_all(body.as_bytes()).await.unwrap();
    stream
}

/// Closes a connection with a reset, as the kernel does for a killed process that has unread data.
pub fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
    drop(stream);
}
