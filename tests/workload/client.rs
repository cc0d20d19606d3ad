//! A client: a contender that wins, holds and gives up a room, or a reader.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::classify::classify;
use super::history::{Answer, Asked, Attempt, LEASE, MILLI, Moment, SECOND, Seen, Stop};
use super::outside::{NoAnswer, Request, sleep};
use super::world::{KEY_CANARY, World};

/// How long a contender retries with one key. An earlier try may have won a lease without the contender's knowledge.
/// This is short enough that no later try can win a second one after the end of that lease.
const KEY_LIFE: Moment = 4 * SECOND;

/// Longer than a node takes to answer that it can't decide, or that the outcome is unknown.
const PATIENCE_MAX: Moment = 6 * SECOND;

/// One client. It sends one request at a time, and goes to another node if one doesn't serve it.
pub struct Client {
    world: Arc<World>,
    id: u32,
    random: StdRng,
    /// The node to which it sends its next request.
    node: usize,
    /// How many keys it has made.
    keys: u32,
}

/// A lease as its holder knows it.
pub struct Holding {
    room: usize,
    holder: String,
    pub term: u64,
    secret: String,
    /// When the holder must have stopped acting.
    deadline: Moment,
}

/// One answer, with the parts that a history doesn't hold.
struct FullAnswer {
    answer: Answer,
    sent: Moment,
    secret: Option<String>,
    retry_after: Option<Moment>,
}

impl Client {
    pub fn new(world: &Arc<World>) -> Client {
        let id = world.next_client();
        let random = StdRng::seed_from_u64(world.seed.wrapping_mul(1_000_003).wrapping_add(id.into()));
        Client { world: world.clone(), id, random, node: id as usize % world.nodes, keys: 0 }
    }

    /// The same client, which sends its next request to this node.
    pub fn at(mut self, node: usize) -> Client {
        self.node = node;
        self
    }

    pub fn now(&self) -> Moment {
        self.world.now()
    }

    /// Takes the next node for the next request.
    fn go_elsewhere(&mut self) {
        self.node = (self.node + 1) % self.world.nodes;
    }

    /// A random duration.
    fn between(&mut self, from: Moment, to: Moment) -> Moment {
        self.random.random_range(from..=to)
    }

    /// How long to wait for an answer: `long` in three of ten cases, `short` otherwise.
    fn patience(&mut self, short: Moment, long: Moment) -> Moment {
        if self.random.random_bool(0.3) { long } else { short }
    }

    /// Sends one request, waits for the complete answer, and records both.
    async fn ask(
        &mut self,
        holder: &str,
        attempt: u32,
        room: usize,
        asked: Asked,
        body: Value,
        limit: Moment,
    ) -> FullAnswer {
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
        let answer = if no_connection { Answer::NothingDone } else { classify(asked, status, body.as_ref()) };
        let body = body.unwrap_or_default();
        let retry_after = body["retry_after_ms"].as_u64().map(|millis| millis * MILLI);
        let secret = body["leader_token"].as_str().map(str::to_owned);
        let answered_at = (answer != Answer::Unknown).then_some(received);
        self.world.recorder.record(|history| {
            history.attempts.push(Attempt {
                client: self.id,
                holder: holder.to_owned(),
                attempt,
                node: self.node,
                room,
                asked,
                sent_at: sent,
                answered_at,
                answer: answer.clone(),
                hangs_up: sent + limit,
                waits,
                status,
                retry_after,
            });
        });
        FullAnswer { answer, sent, secret, retry_after }
    }

    /// Campaigns with a new key until the room is won, or somebody else has it, or [`KEY_LIFE`] is over.
    ///
    /// With `first`, the client hangs up on its first node after that time. A short one hits the moment at which that
    /// node is winning the room for it.
    ///
    /// # Errors
    /// The room was not won. The answer may say how soon to try again.
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
            // A contender that waits for the room may hang up early, and go to another node with the same key.
            let limit = match wait_seconds {
                _ if let (0, Some(first)) = (attempt, first) => first,
                0 => self.patience(2_500 * MILLI, PATIENCE_MAX),
                _ => {
                    let longest = self.patience(2_500 * MILLI, PATIENCE_MAX) + wait_seconds * SECOND;
                    self.between(SECOND, longest)
                }
            };
            let answered = self.ask(&holder, attempt, room, Asked::Campaign, body.clone(), limit).await;
            match (answered.answer, answered.secret) {
                (Answer::Ok(Seen::Won { term, valid_for }), Some(secret)) => {
                    self.world.secrets.lock().unwrap().push(secret.clone());
                    return Ok(Holding { room, holder, term, secret, deadline: answered.sent + valid_for });
                }
                (Answer::Ok(_), _) => return Err(answered.retry_after),
                _ if self.world.now() > started + KEY_LIFE || self.world.is_closing() => return Err(None),
                _ => {
                    self.go_elsewhere();
                    attempt += 1;
                    let pause = self.between(20 * MILLI, 120 * MILLI);
                    sleep(pause).await;
                }
            }
        }
    }

    /// Renews after each third of the lease, at any node that serves, until `until`. Returns the lease if it is still
    /// held then, and `None` if it has run out or was lost.
    pub async fn hold(&mut self, mut holding: Holding, until: Moment) -> Option<Holding> {
        // If the answer to the campaign was slow, this moment is already over.
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
            // In some cases the client hangs up at once, as if the answer had been lost.
            let limit = if self.random.random_bool(0.05) {
                self.between(MILLI, 10 * MILLI)
            } else {
                self.patience(1_200 * MILLI, LEASE)
            };
            let limit = limit.min(holding.deadline - self.world.now().min(holding.deadline)).max(MILLI);
            let body = json!({"leader_token": holding.secret});
            let answered = self.ask(&holding.holder.clone(), attempt, holding.room, asked, body, limit).await;
            attempt += 1;
            match answered.answer {
                // An answer after the deadline is too late: the holder has stopped.
                Answer::Ok(Seen::Won { valid_for, .. }) if self.world.now() < holding.deadline => {
                    holding.deadline = holding.deadline.max(answered.sent + valid_for);
                    renew_at = answered.sent + LEASE / 3;
                }
                Answer::NotHolder => {
                    self.stop(&holding, self.world.now().min(holding.deadline), false);
                    self.resign_late(&holding).await;
                    return None;
                }
                _ => {
                    self.go_elsewhere();
                    renew_at = self.world.now() + self.between(20 * MILLI, 60 * MILLI);
                }
            }
        }
    }

    /// In some cases a holder that has stopped still resigns. That must not end the lease of the next holder.
    async fn resign_late(&mut self, holding: &Holding) {
        if self.random.random_bool(0.3) {
            let pause = self.between(0, 2 * SECOND);
            sleep(pause).await;
            self.resign(holding).await;
        }
    }

    /// Records that a holder has stopped. A real holder reads its clock before each action. So it counts as stopped at
    /// its deadline, even if its thread wakes up later (see `checker::exclusion`).
    fn stop(&self, holding: &Holding, at: Moment, ran_out: bool) {
        let stop = Stop { term: holding.term, at, ran_out };
        self.world.recorder.record(|history| history.stops.push(stop));
    }

    /// Resigns, with up to four tries. Returns whether the resignation was acknowledged.
    pub async fn resign(&mut self, holding: &Holding) -> bool {
        let asked = Asked::Resign { term: holding.term };
        for attempt in 0..4 {
            let body = json!({"leader_token": holding.secret});
            let limit = self.patience(2 * SECOND, PATIENCE_MAX);
            let answered = self.ask(&holding.holder, attempt, holding.room, asked, body, limit).await;
            match answered.answer {
                Answer::Ok(_) => return true,
                Answer::NotHolder => return false,
                _ => self.go_elsewhere(),
            }
        }
        false
    }

    /// Reads who holds a room.
    pub async fn read(&mut self, room: usize, asked: Asked) -> Answer {
        let limit = self.patience(2 * SECOND, PATIENCE_MAX);
        self.ask("", 0, room, asked, Value::Null, limit).await.answer
    }

    /// Campaigns again and again. Each time that it wins, it holds the room for a while, and then resigns or goes
    /// silent.
    pub async fn contend(mut self, room: usize, wait_seconds: u64, rest_max: Moment) {
        let mut hangs_up_early = false;
        while !self.world.is_closing() {
            let first = std::mem::take(&mut hangs_up_early).then(|| self.between(MILLI, 80 * MILLI));
            match self.campaign(room, wait_seconds, first).await {
                Ok(holding) => {
                    let longest = if wait_seconds > 0 { 3 * SECOND } else { 15 * SECOND };
                    let until = self.world.now() + self.between(300 * MILLI, longest);
                    let Some(holding) = self.hold(holding, until).await else { continue };
                    if self.world.is_closing() || self.random.random_bool(0.5) {
                        // The room is vacant now. So the next campaign is likely to win at once, and the client hangs
                        // up on it early.
                        hangs_up_early = self.resign(&holding).await && wait_seconds > 0;
                    } else {
                        // Like a holder that is cut off, it may act until its deadline.
                        self.stop(&holding, holding.deadline, false);
                    }
                    let pause = self.between(100 * MILLI, rest_max);
                    sleep(if hangs_up_early { 0 } else { pause }).await;
                }
                Err(retry_after) => {
                    let pause = self.between(200 * MILLI, 200 * MILLI + rest_max);
                    sleep(pause.min(retry_after.unwrap_or(pause)).max(50 * MILLI)).await;
                }
            }
        }
    }

    /// Reads random rooms at random nodes. Every fourth read, on average, is a local one.
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
