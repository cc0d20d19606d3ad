//! A client that does not read its watch stream.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::caller::Caller;
use crate::harness::{Cluster, Node, eventually};

/// The deadline for the end of a stream.
const SOON: Duration = Duration::from_secs(10);

/// The resident memory of a node in KiB.
fn memory_kib(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A number of the largest events that is a little more than the buffers of a connection and of the node hold. It must
/// not be much more: if sending takes too long, the node ends the stream before the reader goes on.
fn changes_that_fill_the_buffers() -> usize {
    let buffers = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").unwrap();
    let largest: usize = buffers.split_whitespace().last().unwrap().parse().unwrap();
    // With the usual 4 MiB the connection holds 451 events, and the node itself keeps 64.
    100 + largest / 9_000
}

/// The requested size of the receive buffer. Linux makes it twice as large.
const RECEIVE_BUFFER_BYTES: u32 = 16 << 10;
/// Reading this much empties the receive buffer, so the node sees an open window.
const SIP_BYTES: usize = 2 * RECEIVE_BUFFER_BYTES as usize;
/// This many of the largest events, of more than 6 KiB each, fill the receive buffer again.
const SIP_CHANGES: usize = 6;

/// The smallest maximum segment size that every host accepts.
const SEGMENT_BYTES: u32 = 536;

/// Opens a stream with small buffers, and reads only the status.
///
/// The segments are small too. The kernel counts a connection as stuck until the next segment fits into the window of
/// the reader. The usual loopback segments of 64 KiB never fit, so the node would end the stream although the reader
/// reads.
async fn open_and_pause(node: &Node, room: &str, client: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
    socket2::SockRef::from(&socket).set_tcp_mss(SEGMENT_BYTES).unwrap();
    let mut stream = socket.connect(format!("{}:7400", node.settings.address).parse().unwrap()).await.unwrap();
    // In HTTP/1.0 the body has no chunks: it is everything until the end of the connection.
    let head = format!("GET /elections/{room}/watch HTTP/1.0\r\nX-Forwarded-For: {client}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.0 200");
    stream
}

/// For a client that does not read, the node must not skip events, buffer without limit, or keep the place for ever.
#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_a_reader_that_falls_behind_ends_without_skipping_an_event() {
    let changes = changes_that_fill_the_buffers();
    let cluster = Cluster::single_with(&["--trusted-proxies", "127.0.0.0/8", "--max-watches-per-client", "1"]).await;
    let (node, room) = (&cluster.nodes[0], "slow-reader");
    let client = Caller::of(node).await;
    let held = client.win(room, "worker-a", 300).await;
    let mut paused = open_and_pause(node, room, "192.0.2.1").await;
    let _stuck = open_and_pause(node, room, "192.0.2.2").await;

    let before = memory_kib(node);
    let (mut wanted, mut count, mut received, mut sipped_at) = (changes, 0, Vec::new(), Instant::now());
    while count < wanted {
        // The largest possible event, so that the buffers are soon full.
        let metadata = format!("{count:07}{}", "\u{1}".repeat(1017));
        let body = json!({"leader_token": held.token, "metadata": metadata});
        assert_eq!(client.post(&format!("/elections/{room}/renew"), body).await.status, 200);
        count += 1;
        // On a slow machine this takes longer than 15 s, and then the node closes a connection that nobody reads from.
        // So the first reader reads a little now and then, and more events have to fill its buffer again.
        if sipped_at.elapsed() > Duration::from_secs(3) {
            let mut buffer = [0; SIP_BYTES];
            let taken = paused.try_read(&mut buffer).unwrap_or(0);
            received.extend_from_slice(&buffer[..taken]);
            (wanted, sipped_at) = (wanted + SIP_CHANGES, Instant::now());
        }
    }
    let changes = count;
    let grown = memory_kib(node).saturating_sub(before);
    println!("{changes} events of 6 KiB for two readers that do not read: {grown} KiB more memory");
    assert!(grown < 64 << 10, "{grown} KiB");

    // If the last event was cut off, the connection ends with an error.
    let _ = tokio::time::timeout(SOON, paused.read_to_end(&mut received)).await.expect("the end of the stream");
    let text = String::from_utf8_lossy(&received);
    let seen: Vec<usize> =
        text.split("\"metadata\":\"").skip(1).filter_map(|rest| rest.get(..7)?.parse().ok()).collect();
    assert!(seen.len() < changes, "the buffers held all events, so this test has shown nothing");
    assert!(seen.iter().copied().eq(0..seen.len()), "an event is missing: {seen:?}");
    assert!(seen.len() > 10, "too few events arrived, so this test has shown nothing");
    println!("the first reader got the first {} events, then its stream ended", seen.len());

    eventually("the place of the second reader is free", || async {
        let watch = client.request(Method::GET, &format!("/elections/{room}/watch"));
        (watch.header("X-Forwarded-For", "192.0.2.2").send().await.unwrap().status() == 200).then_some(())
    })
    .await;
    assert_eq!(client.renew(room, &held.token).await.status, 200);
}
