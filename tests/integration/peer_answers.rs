//! A peer that answers with far more than any answer has. The node must stop reading, whatever the head of the answer says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quorate::codec;
use quorate::peer::{ANSWER_BYTES_MAX, HttpCarrier, PeerError, Sender, Transport, path};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the false peer sends if the node lets it.
const SENT_BYTES: usize = 400 << 20;

/// The false peer sends this much at once. Then it waits, so that no buffer between it and the node can fill up.
const PIECE_BYTES: usize = 1 << 10;
const PAUSE: Duration = Duration::from_millis(5);

/// More than the node may read beyond its limit. From here on, the false peer no longer pauses.
const TOLERANCE_BYTES: usize = 64 << 10;

async fn read_request(connection: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await.unwrap());
    }
}

/// A peer that answers one request with this head and a body of [`SENT_BYTES`]. It counts the bytes of the body that it
/// could send. The first `at_once` bytes are sent without a pause.
async fn false_peer(head: String, at_once: usize) -> (SocketAddr, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        read_request(&mut connection).await;
        connection.write_all(head.as_bytes()).await.unwrap();
        let block = vec![b'x'; 1 << 20];
        let mut sent = 0;
        while sent < SENT_BYTES {
            let piece_bytes = if sent < at_once {
                block.len().min(at_once - sent)
            } else if sent < at_once + TOLERANCE_BYTES {
                tokio::time::sleep(PAUSE).await;
                PIECE_BYTES
            } else {
                block.len()
            };
            match connection.write(&block[..piece_bytes]).await {
                Ok(bytes) => sent += bytes,
                Err(_) => break,
            }
        }
        sent
    };
    (address, tokio::spawn(answer))
}

/// Asks a peer for a text.
async fn ask(address: SocketAddr) -> Result<String, PeerError> {
    let transport = Transport::new(Arc::new(HttpCarrier::new().unwrap()), None).unwrap();
    let sender = Sender { node_id: 1, cluster_id: None };
    transport.ask_identity(&address.to_string(), path::IDENTITY, sender, Duration::from_secs(20)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large_is_not_read_to_its_end() {
    for (status, framing, at_once) in [
        (200, format!("content-length: {SENT_BYTES}\r\n\r\n"), 0),
        (200, format!("transfer-encoding: chunked\r\n\r\n{SENT_BYTES:x}\r\n"), ANSWER_BYTES_MAX),
        (200, "connection: close\r\n\r\n".into(), ANSWER_BYTES_MAX),
        (503, "connection: close\r\n\r\n".into(), ANSWER_BYTES_MAX),
    ] {
        let (address, peer) = false_peer(format!("HTTP/1.1 {status} Any\r\n{framing}"), at_once).await;
        let error = ask(address).await.unwrap_err();
        assert!(matches!(error, PeerError::Malformed { .. }), "{framing:?}: {error}");
        assert!(error.to_string().contains("answer is larger than"), "{framing:?}: {error}");
        assert!(!error.certainly_did_nothing(), "the peer may have acted on the request");
        let sent =
            tokio::time::timeout(Duration::from_secs(10), peer).await.expect("the connection is closed").unwrap();
        assert!(sent >= at_once && sent < at_once + TOLERANCE_BYTES, "{framing:?}: the peer could send {sent} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_the_largest_size_is_read() {
    let text = "x".repeat(codec::PAYLOAD_BYTES_MAX - 8);
    let answer = codec::encode(&text).unwrap();
    assert_eq!(answer.len(), ANSWER_BYTES_MAX);
    for framing in [format!("content-length: {}\r\n\r\n", answer.len()), "connection: close\r\n\r\n".into()] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let head = format!("HTTP/1.1 200 OK\r\n{framing}");
        let asked = tokio::spawn(ask(address));
        let (mut connection, _) = listener.accept().await.unwrap();
        read_request(&mut connection).await;
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(&answer).await.unwrap();
        drop(connection);
        assert!(asked.await.unwrap().unwrap() == text, "{framing:?}");
    }
}
