//! Watch streams: their events, how soon these come, how many streams a client may have, and how a stream ends.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, fields_of};
use crate::harness::{Cluster, eventually};

/// The deadline for the next event, or the end of a stream.
const SOON: Duration = Duration::from_secs(10);

/// A reader of one stream.
struct Reader {
    response: reqwest::Response,
    unread: String,
}

/// One event, and the time of its arrival.
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
    async fn open(caller: &Caller, room: &str) -> Reader {
        let response = caller.request(Method::GET, &format!("/elections/{room}/watch")).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Reader { response, unread: String::new() }
    }

    fn header(&self, name: &str) -> &str {
        self.response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The next event, or `None` if the stream has ended.
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
            let piece =
                tokio::time::timeout(SOON, self.response.chunk()).await.expect("an event, or the end of the stream");
            // However a node ends the connection, the stream has ended.
            let piece = piece.ok().flatten()?;
            self.unread.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

/// Reads one block of a stream, and checks its format. `None` if the block is a comment.
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
    events.into_iter().map(|event| event.expect("another event")).collect()
}

/// Opens a stream at each node, and checks its headers and its first event, which is the room as it is.
async fn open_on_each_node(callers: &[Caller], room: &str) -> Vec<Reader> {
    let mut readers = Vec::new();
    for caller in callers {
        let asked_at = Instant::now();
        let mut reader = Reader::open(caller, room).await;
        assert_eq!(reader.header("content-type"), "text/event-stream");
        assert_eq!((reader.header("x-accel-buffering"), reader.header("cache-control")), ("no", "no-store"));
        assert!(reader.header("x-request-id").starts_with("req_"));
        let first = reader.next().await.unwrap();
        assert_eq!((&first.data["status"], &first.data["election_id"]), (&json!("vacant"), &json!(room)));
        assert!(asked_at.elapsed() < Duration::from_secs(1), "{:?}", asked_at.elapsed());
        readers.push(reader);
    }
    readers
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_sends_each_change_once_and_in_order() {
    let cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let room = "watched-room";
    let mut readers = open_on_each_node(&callers, room).await;

    let won = callers[1].campaign(room, json!({"candidate_id": "worker-a"})).await;
    let held = won.held(room);
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.leader(), &won.body["leader"]);
        assert!((1..=30_500).contains(&event.data["retry_after_ms"].as_u64().unwrap()), "{event:?}");
    }
    let late = Reader::open(&callers[0], room).await.next().await.unwrap();
    assert_eq!(late.leader(), &won.body["leader"], "a later stream begins with the room as it is then");

    let renewal = json!({"leader_token": held.token, "ttl_seconds": 60, "metadata": "renewed"});
    let renewed = callers[2].post(&format!("/elections/{room}/renew"), renewal).await;
    for event in next_of_all(&mut readers).await {
        assert_eq!((event.leader(), &event.leader()["metadata"]), (&renewed.body["leader"], &json!("renewed")));
    }
    // Requests that change nothing cause no event.
    callers[0].campaign(room, json!({"candidate_id": "worker-b"})).await.is_follower();
    callers[0].resign(room, &"A".repeat(43)).await.is_error(404, "lease_not_current");
    assert_eq!(callers[0].resign(room, &held.token).await.status, 200);
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.data["status"], "vacant");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_sends_the_expiry_of_a_lease_once_and_within_300_ms() {
    const TTL: Duration = Duration::from_secs(5);
    let cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let room = "watched-expiry";
    let mut readers = open_on_each_node(&callers, room).await;

    let sent_at = Instant::now();
    let held = callers[0].win(room, "worker-a", TTL.as_secs()).await;
    let granted_at = Instant::now();
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.leader()["term"], held.term);
    }
    let mut latest = Duration::ZERO;
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.data["status"], "vacant", "{event:?}");
        assert!(event.came_at >= sent_at + TTL, "the event came before the lease expired");
        latest = latest.max(event.came_at - (granted_at + TTL));
    }
    println!("three nodes sent the expiry at most {latest:?} after the deadline of the lease");
    // The promise is 300 ms. The rest is for a machine that is busy with other tests.
    assert!(latest < Duration::from_secs(1), "{latest:?}");
    let next = callers[1].win(room, "worker-b", 30).await;
    assert!(next.term > held.term);
    for event in next_of_all(&mut readers).await {
        assert_eq!(event.leader()["term"], next.term, "the expiry was sent twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_at_its_limit_of_streams_gets_another_when_one_ends() {
    let args = ["--max-watches-per-client", "3", "--max-watches", "4", "--trusted-proxies", "127.0.0.0/8"];
    let cluster = Cluster::single_with(&args).await;
    let node = Caller::of(&cluster.nodes[0]).await;
    let watch = async |client: &str| {
        let request = node.request(Method::GET, "/elections/many-readers/watch");
        request.header("X-Forwarded-For", client).send().await.unwrap()
    };
    let refused = async |client: &str| {
        let request = node.request(Method::GET, "/elections/many-readers/watch");
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
    eventually("the place of the stream that ended is free", || async {
        (watch("192.0.2.1").await.status() == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_soon_after_its_node_has_lost_the_quorum() {
    let mut cluster = Cluster::three().await;
    let left = cluster.follower().await;
    let mut reader = Reader::open(&Caller::of(&cluster.nodes[left]).await, "cut-off-room").await;
    reader.next().await.unwrap();
    cluster.nodes.iter_mut().enumerate().filter(|(place, _)| *place != left).for_each(|(_, node)| node.kill());
    let cut_off_at = Instant::now();
    assert!(reader.next().await.is_none(), "there was another event");
    let took = cut_off_at.elapsed();
    println!("a stream on a node without its quorum ended after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(cluster.nodes[left].output().matches("panicked").count(), 0);
}
