//! A reader that takes nothing from its watch stream.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::caller::Caller;
use crate::harness::{Cluster, Node, eventually};

/// Longer than the end of a stream takes, shorter than the test's own patience.
const SOON: Duration = Duration::from_secs(10);

/// Resident memory of a node, in KiB.
fn memory_kib(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// How many of the largest events are more than a connection and the node keep for a reader, and not many more:
/// what takes long to send would have the reader cut off before it goes on.
fn changes_that_fill_the_buffers() -> usize {
    let buffers = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").unwrap();
    let largest: usize = buffers.split_whitespace().last().unwrap().parse().unwrap();
    // With the usual 4 MiB it is 451, and 64 more that the node itself keeps.
    100 + largest / 9_000
}

/// What a reader's buffer is asked to hold. Linux makes it twice that.
const RECEIVE_BUFFER_BYTES: u32 = 16 << 10;
/// All that is in it, so that the node sees it opened.
const SIP_BYTES: usize = 2 * RECEIVE_BUFFER_BYTES as usize;
/// How many of the largest changes, which have more than 6 KiB, fill it up again.
const SIP_CHANGES: usize = 6;

/// The smallest that every host takes.
const SEGMENT_BYTES: u32 = 536;

/// A stream whose reader takes nothing yet, through small buffers.
///
/// The segments are small too. The kernel counts a connection as stuck until the segment that is next fits into the
/// reader's window, and the usual ones on the loopback, of 64 KiB, never do: it would be cut off whatever it takes.
async fn open_and_pause(node: &Node, room: &str, client: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
    socket2::SockRef::from(&socket).set_tcp_mss(SEGMENT_BYTES).unwrap();
    let mut stream = socket.connect(format!("{}:7400", node.settings.address).parse().unwrap()).await.unwrap();
    // In HTTP/1.0 a body is what comes until the end, without chunks.
    let head = format!("GET /elections/{room}/watch HTTP/1.0\r\nX-Forwarded-For: {client}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.0 200");
    stream
}

/// A reader that takes nothing must not get a stream with holes in it, nor be kept in memory, nor hold a place
/// for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_falls_behind_is_ended_and_gets_no_stream_with_holes() {
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
        // The largest that there is in an event, so that the buffers on the way are soon full.
        let metadata = format!("{count:07}{}", "\u{1}".repeat(1017));
        let body = json!({"leader_token": held.token, "metadata": metadata});
        assert_eq!(client.post(&format!("/elections/{room}/renew"), body).await.status, 200);
        count += 1;
        // On a slow machine they take longer than the 15 s after which a connection is cut off that nothing is taken
        // from. The reader that is to go on takes a little meanwhile, and what it took has to be filled up again.
        if sipped_at.elapsed() > Duration::from_secs(3) {
            let mut buffer = [0; SIP_BYTES];
            let taken = paused.try_read(&mut buffer).unwrap_or(0);
            received.extend_from_slice(&buffer[..taken]);
            (wanted, sipped_at) = (wanted + SIP_CHANGES, Instant::now());
        }
    }
    let changes = count;
    let grown = memory_kib(node).saturating_sub(before);
    println!("{changes} changes of 6 KiB beside two readers that take none: {grown} KiB more memory");
    assert!(grown < 64 << 10, "{grown} KiB");

    // The end of a connection whose last event could not be sent whole is an error here.
    let _ = tokio::time::timeout(SOON, paused.read_to_end(&mut received)).await.expect("the stream has ended");
    let text = String::from_utf8_lossy(&received);
    let seen: Vec<usize> =
        text.split("\"metadata\":\"").skip(1).filter_map(|rest| rest.get(..7)?.parse().ok()).collect();
    assert!(seen.len() < changes, "the buffers took it all, so this has shown nothing");
    assert!(seen.iter().copied().eq(0..seen.len()), "a hole: {seen:?}");
    assert!(seen.len() > 10, "it was not told enough to have shown anything");
    println!("the reader that went on was told of the first {} changes, then its stream ended", seen.len());

    eventually("the place of the reader that is stuck", || async {
        let watch = client.request(Method::GET, &format!("/elections/{room}/watch"));
        (watch.header("X-Forwarded-For", "192.0.2.2").send().await.unwrap().status() == 200).then_some(())
    })
    .await;
    assert_eq!(client.renew(room, &held.token).await.status, 200);
}
