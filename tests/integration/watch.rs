//! Watch streams: what is told, to whom, how soon, and how a stream ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::caller::{Caller, fields_of};
use crate::harness::{self, Cluster, Held, Node, campaign, eventually, renew, resign};

/// Longer than any event of these tests takes, shorter than the test's own patience.
const SOON: Duration = Duration::from_secs(10);

/// A reader of one stream.
struct Reader {
    response: reqwest::Response,
    unread: String,
}

/// One event, and when it came.
#[derive(Debug)]
struct Event {
    data: Value,
    came_at: Instant,
}

impl Event {
    fn leader(&self) -> &Value {
        &self.data["leader"]
    }
}

impl Reader {
    async fn open(url: &str, room: &str) -> Reader {
        let response = harness::http().get(format!("{url}/elections/{room}/watch")).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Reader { response, unread: String::new() }
    }

    fn header(&self, name: &str) -> &str {
        self.response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The next event. `None` when the stream has ended.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let event = read_event(block);
                self.unread = rest.to_owned();
                if event.is_some() {
                    return event;
                }
                continue;
            }
            let piece = tokio::time::timeout(SOON, self.response.chunk()).await.expect("an event or the end");
            // A node that was killed or has given up ends the connection in its own way.
            let piece = piece.ok().flatten()?;
            self.unread.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

/// Reads one block of a stream, and checks that it is written as the contract writes it. `None` if it is a comment.
fn read_event(block: &str) -> Option<Event> {
    let lines: Vec<&str> = block.lines().collect();
    if lines.iter().all(|line| line.starts_with(':')) {
        return None;
    }
    let [event, retry, data] = lines[..] else { panic!("an event has three lines: {block:?}") };
    assert_eq!((event, retry), ("event: state", "retry: 1000"));
    let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(
        fields_of(&data),
        ["election_id", "leader", "observed_at", "retry_after_ms", "schema_version", "status"],
        "{data}"
    );
    assert_eq!(data["schema_version"], 1);
    assert_eq!(data["leader"].is_null(), data["status"] == "vacant", "{data}");
    assert_eq!(data["retry_after_ms"] == 0, data["status"] == "vacant", "{data}");
    Some(Event { data, came_at: Instant::now() })
}

/// The next event of each reader.
async fn next_of_all(readers: &mut [Reader]) -> Vec<Event> {
    let events = futures::future::join_all(readers.iter_mut().map(Reader::next)).await;
    events.into_iter().map(|event| event.expect("the stream goes on")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_told_once_on_every_node_as_it_happens() {
    let cluster = Cluster::three().await;
    let urls = cluster.urls();
    let room = "watched-room";
    let mut readers = Vec::new();
    for url in &urls {
        let asked_at = Instant::now();
        let mut reader = Reader::open(url, room).await;
        assert_eq!(reader.header("content-type"), "text/event-stream");
        assert_eq!((reader.header("x-accel-buffering"), reader.header("cache-control")), ("no", "no-store"));
        assert!(reader.header("x-request-id").starts_with("req_"));
        let snapshot = reader.next().await.unwrap();
        assert_eq!((&snapshot.data["status"], &snapshot.data["election_id"]), (&json!("vacant"), &json!(room)));
        assert!(asked_at.elapsed() < Duration::from_secs(1), "{:?}", asked_at.elapsed());
        readers.push(reader);
    }

    let won = campaign(&urls[1], room, "worker-a", 30).await;
    let held = Held::from_answer(room, &won);
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.leader(), &won.1["leader"]);
        assert!((1..=30_500).contains(&event.data["retry_after_ms"].as_u64().unwrap()), "{event:?}");
    }
    let late = Reader::open(&urls[0], room).await.next().await.unwrap();
    assert_eq!(late.leader(), &won.1["leader"], "who comes later begins with a snapshot of this moment");

    let renewed = harness::post(
        &format!("{}/elections/{room}/renew", urls[2]),
        json!({"leader_token": held.token, "ttl_seconds": 60, "metadata": "renewed"}),
    )
    .await
    .unwrap();
    for event in next_of_all(&mut readers).await {
        assert_eq!((event.leader(), &event.leader()["metadata"]), (&renewed.1["leader"], &json!("renewed")));
    }
    // Who only asks or loses changes nothing, and is told to nobody.
    campaign(&urls[0], room, "worker-b", 30).await;
    resign(&urls[0], room, &"A".repeat(43)).await.unwrap();
    resign(&urls[0], room, &held.token).await.unwrap();
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.data["status"], "vacant");
    }

    // The holder dies, and says nothing.
    let sent_at = Instant::now();
    let held = Held::from_answer(room, &campaign(&urls[0], room, "worker-a", 5).await);
    let granted_at = Instant::now();
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.leader()["term"], held.term);
    }
    let ttl = Duration::from_secs(5);
    let mut latest = Duration::ZERO;
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.data["status"], "vacant", "{event:?}");
        assert!(event.came_at >= sent_at + ttl, "told before the lease was over");
        latest = latest.max(event.came_at - (granted_at + ttl));
    }
    println!("the end of a lease was told on three nodes at most {latest:?} after its deadline");
    // 300 ms is the promise; the rest is for a machine that is busy with other tests.
    assert!(latest < Duration::from_secs(1), "{latest:?}");
    let next = Held::from_answer(room, &campaign(&urls[1], room, "worker-b", 30).await);
    assert!(next.term > held.term);
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.leader()["term"], next.term, "the end was told once, and then this");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_so_many_streams_and_gets_a_place_back_when_one_ends() {
    let args = ["--max-watches-per-client", "3", "--max-watches", "4", "--trusted-proxies", "127.0.0.0/8"];
    let cluster = Cluster::single_with(&args).await;
    let node = Caller::of(&cluster.nodes[0]).await;
    let watch = async |client: &str| {
        let request = node.request(reqwest::Method::GET, "/elections/many-readers/watch");
        request.header("X-Forwarded-For", client).send().await.unwrap()
    };
    let refused = async |client: &str| {
        let request = node.request(reqwest::Method::GET, "/elections/many-readers/watch");
        let answer = node.send(request.header("X-Forwarded-For", client)).await;
        answer.is_error(429, "rate_limited");
        answer.body["details"].as_str().unwrap().to_owned()
    };
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(watch("192.0.2.1").await);
        assert_eq!(streams.last().unwrap().status(), 200);
    }
    assert_eq!(
        refused("192.0.2.1").await,
        "this node allows each client 3 watch streams; close one, or watch at another node"
    );
    streams.push(watch("192.0.2.2").await);
    assert_eq!(streams.last().unwrap().status(), 200);
    assert_eq!(refused("192.0.2.3").await, "this node allows 4 watch streams in all; watch at another node");
    streams.remove(0);
    eventually("the place of the one that ended", || async {
        (watch("192.0.2.1").await.status() == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_node_can_no_longer_know_what_happens() {
    let mut cluster = Cluster::three().await;
    let left = cluster.follower().await;
    let mut reader = Reader::open(&cluster.urls()[left], "cut-off-room").await;
    reader.next().await.unwrap();
    cluster.nodes.iter_mut().enumerate().filter(|(place, _)| *place != left).for_each(|(_, node)| node.kill());
    let cut_off_at = Instant::now();
    assert!(reader.next().await.is_none(), "the end, and no event");
    let took = cut_off_at.elapsed();
    println!("a stream on a node without its quorum ended after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(cluster.nodes[left].output().matches("panicked").count(), 0);
}

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
    let held = Held::from_answer(room, &campaign(&node.url(), room, "worker-a", 300).await);
    let mut paused = open_and_pause(node, room, "192.0.2.1").await;
    let _stuck = open_and_pause(node, room, "192.0.2.2").await;

    let client = Caller::of(node).await;
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
        let watch = client.request(reqwest::Method::GET, &format!("/elections/{room}/watch"));
        (watch.header("X-Forwarded-For", "192.0.2.2").send().await.unwrap().status() == 200).then_some(())
    })
    .await;
    assert_eq!(renew(&node.url(), room, &held.token).await.unwrap().0, 200);
}
