//! A connection on which any bytes can be said, and what came back on it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Node;

/// The longest that anything here may take; the node's own limits are 10 s.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What is to come back, and whether the connection can be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A success.
    Ok(u16),
    /// A success, and the end of the connection.
    OkAndClosed(u16),
    /// An error in our words.
    Error(u16, &'static str),
    /// The same, and the end of the connection, since nobody knows where the next request begins.
    ErrorAndClosed(u16, &'static str),
    /// hyper's own answer, which is a status and nothing else, and the end of the connection. No route has seen it.
    Bare(u16),
    /// The end of the connection without a word.
    Closed,
}

/// A whole answer.
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

/// A connection on which anything can be said.
pub struct RawConnection {
    pub stream: TcpStream,
    unread: Vec<u8>,
}

impl RawConnection {
    pub async fn open(node: &Node) -> RawConnection {
        let address = node.url().strip_prefix("http://").unwrap().to_owned();
        RawConnection { stream: TcpStream::connect(address).await.unwrap(), unread: Vec::new() }
    }

    /// A node that has refused already may close while the rest is on its way.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// One answer, or `None` at the end of the connection.
    pub async fn receive(&mut self, is_head: bool) -> Option<Reply> {
        tokio::time::timeout(PATIENCE, self.read_reply(is_head)).await.expect("an answer, or the end")
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
            // Closed in order, or with bytes of ours unread.
            Ok(0) | Err(_) => None,
        }
    }

    /// Whether another request is answered here.
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

/// What comes back for `bytes` on a new connection.
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

/// The codes that the cases here can lead to.
const CODES: [&str; 6] = [INVALID, "invalid_ttl", "not_found", "method_not_allowed", TOO_LARGE, NOT_JSON];
pub const INVALID: &str = "invalid_input";
pub const TOO_LARGE: &str = "payload_too_large";
pub const NOT_JSON: &str = "unsupported_media_type";

pub async fn check(node: &Node, cases: &[(&str, Vec<u8>, Wanted)]) {
    for (name, bytes, wanted) in cases {
        let (found, reply) = answer_to(node, bytes).await;
        assert_eq!(found, *wanted, "{name}: {reply:?}");
    }
}

/// Sends the head of a request, with `headers` that each end a connection, on a connection of its own.
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

/// Sends a request on a connection of its own, which the caller can then close as rudely as it likes.
pub async fn send_raw(url: &str, request_line: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = send_head(url, request_line, headers, body.len()).await;
    stream.write_all(body.as_bytes()).await.unwrap();
    stream
}

/// Closes a connection with a reset, as a killed process with unread data does.
pub fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
    drop(stream);
}
