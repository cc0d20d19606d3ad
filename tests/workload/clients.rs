//! Those who use the cluster meanwhile: contenders that hold and give up rooms, readers, watchers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::history::{Answer, Asked, Attempt, LEASE, MILLI, Moment, Recorder, SECOND, Seen, Stop, WatchEvent};

/// One request to a node.
pub struct Request {
    pub node: usize,
    pub is_post: bool,
    pub path: String,
    pub idempotency_key: Option<String>,
    pub body: Value,
}

/// Why there is no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// Nothing was sent.
    NoConnection,
    /// Something was, and anything may come of it.
    Unknown,
}

/// How clients reach nodes, and which clock they have: real ones or simulated ones. A request whose future is dropped
/// is one whose client hangs up.
pub trait Outside: Send + Sync + 'static {
    fn now(&self) -> Moment;
    /// Status and body.
    fn ask(&self, request: Request) -> BoxFuture<'static, Result<(u16, Vec<u8>), NoAnswer>>;
    /// The bytes of a watch stream, as they come.
    fn watch(&self, node: usize, path: String) -> BoxFuture<'static, Option<BoxStream<'static, Vec<u8>>>>;
}

/// What all clients share.
pub struct World {
    pub nodes: usize,
    pub rooms: Vec<String>,
    pub seed: u64,
    pub recorder: Recorder,
    /// Everybody finishes what they do, and holders resign.
    pub closing: AtomicBool,
    pub outside: Box<dyn Outside>,
    pub secrets: std::sync::Mutex<Vec<String>>,
    next_client: AtomicU32,
    next_stream: AtomicU64,
}

/// Every key begins so, so that a key that leaks is found.
pub const KEY_CANARY: &str = "canary-key-of-";

/// How long one key is tried before its contender starts anew: short enough that no try of it can win a second
/// lease after the end of a first one that nobody heard of.
const KEY_LIFE: Moment = 4 * SECOND;

/// Longer than a node tries before it says that it can't decide, or doesn't know.
const PATIENCE_MAX: Moment = 6 * SECOND;

impl World {
    pub fn new(outside: impl Outside, nodes: usize, rooms: usize, seed: u64) -> Arc<World> {
        Arc::new(World {
            nodes,
            rooms: (0..rooms).map(|room| format!("chaos-room-{room}")).collect(),
            seed,
            recorder: Recorder::default(),
            closing: AtomicBool::new(false),
            outside: Box::new(outside),
            secrets: std::sync::Mutex::default(),
            next_client: AtomicU32::new(1),
            next_stream: AtomicU64::new(1),
        })
    }

    pub fn now(&self) -> Moment {
        self.outside.now()
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub fn client(self: &Arc<Self>) -> Client {
        let id = self.next_client.fetch_add(1, Ordering::SeqCst);
        let random = StdRng::seed_from_u64(self.seed.wrapping_mul(1_000_003).wrapping_add(id.into()));
        Client { world: self.clone(), id, random, node: id as usize % self.nodes, keys: 0 }
    }
}

/// One client, that does one thing at a time and goes to another node when one doesn't serve it.
pub struct Client {
    world: Arc<World>,
    id: u32,
    random: StdRng,
    node: usize,
    keys: u32,
}

/// A lease as its holder knows it.
pub struct Holding {
    room: usize,
    holder: String,
    pub term: u64,
    secret: String,
    /// When to have stopped, by the holder's clock.
    deadline: Moment,
}

/// One answer, and what is in it that no history holds.
struct Told {
    answer: Answer,
    sent: Moment,
    secret: Option<String>,
    retry_after: Option<Moment>,
}

impl Client {
    pub fn at(mut self, node: usize) -> Client {
        self.node = node;
        self
    }

    pub fn now(&self) -> Moment {
        self.world.now()
    }

    fn elsewhere(&mut self) {
        self.node = (self.node + 1) % self.world.nodes;
    }

    fn between(&mut self, from: Moment, to: Moment) -> Moment {
        self.random.random_range(from..=to)
    }

    /// Mostly a bit of time; now and then more than a node takes to say that it can't decide.
    fn patience(&mut self, short: Moment, long: Moment) -> Moment {
        if self.random.random_bool(0.3) { long } else { short }
    }

    /// Sends one request, waits for the whole answer and records both.
    async fn ask(&mut self, holder: &str, attempt: u32, room: usize, asked: Asked, body: Value, limit: Moment) -> Told {
        let base = format!("/elections/{}", self.world.rooms[room]);
        let (is_post, path) = match asked {
            Asked::Campaign => (true, format!("{base}/campaign")),
            Asked::Renew { .. } => (true, format!("{base}/renew")),
            Asked::Resign { .. } => (true, format!("{base}/resign")),
            Asked::Read => (false, base),
            Asked::LocalRead => (false, format!("{base}?consistency=local")),
        };
        let idempotency_key = (asked == Asked::Campaign).then(|| format!("{KEY_CANARY}{holder}"));
        let waits = body["wait_seconds"].as_u64().unwrap_or(0) * SECOND;
        let sent = self.world.now();
        let answering = self.world.outside.ask(Request { node: self.node, is_post, path, idempotency_key, body });
        let answered = tokio::time::timeout(Duration::from_micros(limit), answering).await;
        let answered = answered.unwrap_or(Err(NoAnswer::Unknown));
        let received = self.world.now();
        let (status, body) = match &answered {
            Ok((status, body)) => (*status, serde_json::from_slice::<Value>(body).ok()),
            Err(_) => (0, None),
        };
        let no_connection = answered == Err(NoAnswer::NoConnection);
        let answer = if no_connection { Answer::No } else { classify(asked, status, body.as_ref()) };
        let body = body.unwrap_or_default();
        let retry_after = body["retry_after_ms"].as_u64().map(|millis| millis * MILLI);
        let secret = body["leader_token"].as_str().map(str::to_owned);
        let t1 = (answer != Answer::Unknown).then_some(received);
        self.world.recorder.record(|history| {
            history.attempts.push(Attempt {
                client: self.id,
                holder: holder.to_owned(),
                attempt,
                node: self.node,
                room,
                asked,
                t0: sent,
                t1,
                answer: answer.clone(),
                hangs_up: sent + limit,
                waits,
                status,
                retry_after,
            });
        });
        Told { answer, sent, secret, retry_after }
    }

    /// Campaigns with a fresh key until the room is won, lost, or the key is given up. One who waits may hang up on its
    /// first node after `first`: in haste, while that one is likely to be winning the room for it.
    pub async fn campaign(
        &mut self,
        room: usize,
        wait_seconds: u64,
        first: Option<Moment>,
    ) -> Result<Holding, Option<Moment>> {
        self.keys += 1;
        let holder = format!("c{}-{}-{:08x}", self.id, self.keys, self.random.random::<u32>());
        let body = json!({"candidate_id": holder, "ttl_seconds": LEASE / SECOND, "wait_seconds": wait_seconds});
        let started = self.world.now();
        let mut attempt = 0;
        loop {
            // Who waits may lose patience, and ask elsewhere with the same key.
            let limit = match wait_seconds {
                _ if let (0, Some(first)) = (attempt, first) => first,
                0 => self.patience(2_500 * MILLI, PATIENCE_MAX),
                _ => {
                    let longest = self.patience(2_500 * MILLI, PATIENCE_MAX) + wait_seconds * SECOND;
                    self.between(SECOND, longest)
                }
            };
            let told = self.ask(&holder, attempt, room, Asked::Campaign, body.clone(), limit).await;
            match (told.answer, told.secret) {
                (Answer::Ok(Seen::Won { term, valid_for }), Some(secret)) => {
                    self.world.secrets.lock().unwrap().push(secret.clone());
                    return Ok(Holding { room, holder, term, secret, deadline: told.sent + valid_for });
                }
                (Answer::Ok(_), _) => return Err(told.retry_after),
                _ if self.world.now() > started + KEY_LIFE || self.world.is_closing() => return Err(None),
                _ => {
                    self.elsewhere();
                    attempt += 1;
                    let pause = self.between(20 * MILLI, 120 * MILLI);
                    sleep(pause).await;
                }
            }
        }
    }

    /// Renews at a third of the lease, on whatever node serves, until `until`, the deadline, or bad news. Gives the
    /// lease back if it is still held.
    pub async fn hold(&mut self, mut holding: Holding, until: Moment) -> Option<Holding> {
        // At once, if the answer was long in coming.
        let mut renew_at = holding.deadline.saturating_sub(LEASE - LEASE / 3);
        let mut attempt = 0;
        loop {
            let next = renew_at.min(until).min(holding.deadline);
            sleep(next.saturating_sub(self.world.now())).await;
            if self.world.now() >= holding.deadline {
                self.stop(&holding, holding.deadline, true);
                self.resign_late(&holding).await;
                return None;
            }
            if self.world.now() >= until || self.world.is_closing() {
                return Some(holding);
            }
            let asked = Asked::Renew { term: holding.term };
            // Now and then the answer is lost on the way.
            let limit = if self.random.random_bool(0.05) {
                self.between(MILLI, 10 * MILLI)
            } else {
                self.patience(1_200 * MILLI, LEASE)
            };
            let limit = limit.min(holding.deadline - self.world.now().min(holding.deadline)).max(MILLI);
            let body = json!({"leader_token": holding.secret});
            let told = self.ask(&holding.holder.clone(), attempt, holding.room, asked, body, limit).await;
            attempt += 1;
            match told.answer {
                // An answer that comes after the deadline finds a holder that has stopped.
                Answer::Ok(Seen::Won { valid_for, .. }) if self.world.now() < holding.deadline => {
                    holding.deadline = holding.deadline.max(told.sent + valid_for);
                    renew_at = told.sent + LEASE / 3;
                }
                Answer::NotHolder => {
                    self.stop(&holding, self.world.now().min(holding.deadline), false);
                    self.resign_late(&holding).await;
                    return None;
                }
                _ => {
                    self.elsewhere();
                    renew_at = self.world.now() + self.between(20 * MILLI, 60 * MILLI);
                }
            }
        }
    }

    /// Now and then a holder that has stopped still tidies up after itself. It must not end its successor's lease.
    async fn resign_late(&mut self, holding: &Holding) {
        if self.random.random_bool(0.3) {
            let pause = self.between(0, 2 * SECOND);
            sleep(pause).await;
            self.resign(holding).await;
        }
    }

    /// A holder looks at its clock before each act, so its belief ends at its deadline even where its thread wakes
    /// up late (see `checker::exclusion`).
    fn stop(&self, holding: &Holding, at: Moment, ran_out: bool) {
        let stop = Stop { term: holding.term, at, ran_out };
        self.world.recorder.record(|history| history.stops.push(stop));
    }

    /// Resigns, on up to four nodes. Whether it worked.
    pub async fn resign(&mut self, holding: &Holding) -> bool {
        let asked = Asked::Resign { term: holding.term };
        for attempt in 0..4 {
            let body = json!({"leader_token": holding.secret});
            let limit = self.patience(2 * SECOND, PATIENCE_MAX);
            let told = self.ask(&holding.holder, attempt, holding.room, asked, body, limit).await;
            match told.answer {
                Answer::Ok(_) => return true,
                Answer::NotHolder => return false,
                _ => self.elsewhere(),
            }
        }
        false
    }

    pub async fn read(&mut self, room: usize, asked: Asked) -> Answer {
        let limit = self.patience(2 * SECOND, PATIENCE_MAX);
        self.ask("", 0, room, asked, Value::Null, limit).await.answer
    }

    /// Wants the room again and again: holds it for a while, then resigns, or falls silent.
    pub async fn contend(mut self, room: usize, wait_seconds: u64, rest_max: Moment) {
        let mut hasty = false;
        while !self.world.is_closing() {
            let first = std::mem::take(&mut hasty).then(|| self.between(MILLI, 80 * MILLI));
            match self.campaign(room, wait_seconds, first).await {
                Ok(holding) => {
                    let longest = if wait_seconds > 0 { 3 * SECOND } else { 15 * SECOND };
                    let until = self.world.now() + self.between(300 * MILLI, longest);
                    let Some(holding) = self.hold(holding, until).await else { continue };
                    if self.world.is_closing() || self.random.random_bool(0.5) {
                        // The room is vacant now, and nobody else has noticed yet.
                        hasty = self.resign(&holding).await && wait_seconds > 0;
                    } else {
                        // As one that has crashed: it may be acting for as long as it was told.
                        self.stop(&holding, holding.deadline, false);
                    }
                    let pause = self.between(100 * MILLI, rest_max);
                    sleep(if hasty { 0 } else { pause }).await;
                }
                Err(retry_after) => {
                    let pause = self.between(200 * MILLI, 200 * MILLI + rest_max);
                    sleep(pause.min(retry_after.unwrap_or(pause)).max(50 * MILLI)).await;
                }
            }
        }
    }

    /// Reads random rooms on random nodes; every fourth time what the node knows by itself.
    pub async fn keep_reading(mut self) {
        while !self.world.is_closing() {
            self.node = self.random.random_range(0..self.world.nodes);
            let room = self.random.random_range(0..self.world.rooms.len());
            let asked = if self.random.random_bool(0.25) { Asked::LocalRead } else { Asked::Read };
            self.read(room, asked).await;
            let pause = self.between(30, 100) * MILLI;
            sleep(pause).await;
        }
    }
}

/// How the contenders for a room go about it.
#[derive(Debug, Clone)]
pub struct Habits {
    /// For how long each of them waits for the room, in seconds; 0 for one that doesn't.
    pub waits_seconds: Vec<u64>,
    /// How long they rest at most before they want it again. The longer, the more often it is vacant.
    pub rest_max: Moment,
}

/// Those who use the cluster: some contend for each room, and some of these wait for it; some read; and each room is
/// watched on each node, which observers do until they are dropped.
pub struct Crowd {
    pub clients: JoinSet<()>,
    pub observers: JoinSet<()>,
    /// The watch streams that are open, by their numbers; 0 for one that isn't.
    pub open: Vec<Arc<AtomicU64>>,
}

impl Crowd {
    /// Has them begin. The last of the world's rooms is left to others.
    pub fn enter(world: &Arc<World>, habits: &Habits, readers: usize) -> Crowd {
        let mut crowd = Crowd { clients: JoinSet::new(), observers: JoinSet::new(), open: Vec::new() };
        for room in 0..world.rooms.len() - 1 {
            for wait_seconds in &habits.waits_seconds {
                crowd.clients.spawn(world.client().contend(room, *wait_seconds, habits.rest_max));
            }
            for node in 0..world.nodes {
                let stream = Arc::new(AtomicU64::new(0));
                crowd.open.push(stream.clone());
                crowd.observers.spawn(keep_watching(world.clone(), node, room, stream));
            }
        }
        for _ in 0..readers {
            crowd.clients.spawn(world.client().keep_reading());
        }
        crowd
    }

    /// Waits until all clients have ended, once the world is closing. Whether they did.
    pub async fn leave(&mut self) -> bool {
        let all_end = async {
            while let Some(ended) = self.clients.join_next().await {
                ended.expect("no client gives up");
            }
        };
        tokio::time::timeout(Duration::from_secs(40), all_end).await.is_ok()
    }
}

/// Watches a room on a node for ever, one stream after the other. `open` names the stream while it is open.
pub async fn keep_watching(world: Arc<World>, node: usize, room: usize, open: Arc<AtomicU64>) {
    let path = format!("/elections/{}/watch", world.rooms[room]);
    loop {
        if let Some(mut chunks) = world.outside.watch(node, path.clone()).await {
            let stream = world.next_stream.fetch_add(1, Ordering::SeqCst);
            let mut text = String::new();
            while let Some(chunk) = chunks.next().await {
                let at = world.now();
                text.push_str(&String::from_utf8_lossy(&chunk));
                while let Some((event, rest)) = text.split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())) {
                    text = rest;
                    let Some(data) = event.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
                    let data: Value = serde_json::from_str(data).expect("an event's data is JSON");
                    let leader = data.get("leader").expect("an event names a leader, or nobody");
                    let held = (!leader.is_null()).then(|| {
                        let name = leader["candidate_id"].as_str().expect("a leader has a name").to_owned();
                        (name, leader["term"].as_u64().expect("a leader has a term"))
                    });
                    world.recorder.record(|history| {
                        history.events.push(WatchEvent { stream, node, room, at, held });
                    });
                    open.store(stream, Ordering::SeqCst);
                }
            }
            open.store(0, Ordering::SeqCst);
            let ended = world.now();
            world.recorder.record(|history| {
                history.stream_ends.insert(stream, ended);
            });
        }
        sleep(300 * MILLI).await;
    }
}

fn classify(asked: Asked, status: u16, body: Option<&Value>) -> Answer {
    let Some(body) = body else { return Answer::Unknown };
    match status {
        200..=299 => seen(asked, body).map_or(Answer::Unknown, Answer::Ok),
        404 if body["code"] == "lease_not_current" => Answer::NotHolder,
        400 | 401 | 403 | 404 | 409 | 429 => Answer::No,
        503 if body["code"] == "unavailable" => Answer::No,
        _ => Answer::Unknown,
    }
}

fn seen(asked: Asked, body: &Value) -> Option<Seen> {
    if let Asked::Resign { .. } = asked {
        return Some(Seen::Resigned { term: body["previous_term"].as_u64()? });
    }
    if body["status"] == "vacant" {
        return Some(Seen::Vacant);
    }
    let term = body["leader"]["term"].as_u64()?;
    if body["leader_token"].is_string() {
        return Some(Seen::Won { term, valid_for: body["valid_for_ms"].as_u64()? * MILLI });
    }
    Some(Seen::Held { holder: body["leader"]["candidate_id"].as_str()?.to_owned(), term })
}

pub async fn sleep(duration: Moment) {
    tokio::time::sleep(Duration::from_micros(duration)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: Value) -> Answer {
        classify(Asked::Renew { term: 5 }, status, Some(&body))
    }

    #[test]
    fn only_a_documented_no_is_a_no() {
        for status in [400, 401, 403, 404, 409, 429] {
            assert_eq!(of(status, json!({"code": "x"})), Answer::No);
        }
        assert_eq!(of(404, json!({"code": "lease_not_current"})), Answer::NotHolder);
        assert_eq!(of(503, json!({"code": "unavailable"})), Answer::No);
    }

    #[test]
    fn what_may_have_been_done_is_unknown() {
        assert_eq!(of(503, json!({"code": "outcome_unknown"})), Answer::Unknown);
        assert_eq!(of(500, json!({"code": "internal_error"})), Answer::Unknown);
        assert_eq!(of(502, json!({})), Answer::Unknown);
        assert_eq!(of(200, json!({"status": "leader"})), Answer::Unknown);
        assert_eq!(classify(Asked::Campaign, 0, None), Answer::Unknown);
    }

    #[test]
    fn what_is_complete_is_understood() {
        let body = json!({"status": "leader", "leader": {"candidate_id": "a", "term": 7}, "leader_token": "t", "valid_for_ms": 5});
        assert_eq!(of(200, body), Answer::Ok(Seen::Won { term: 7, valid_for: 5 * MILLI }));
        let resigned = classify(Asked::Resign { term: 7 }, 200, Some(&json!({"status": "vacant", "previous_term": 7})));
        assert_eq!(resigned, Answer::Ok(Seen::Resigned { term: 7 }));
        assert_eq!(of(200, json!({"status": "vacant"})), Answer::Ok(Seen::Vacant));
    }
}
