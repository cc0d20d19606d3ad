//! One client: a contender that holds and gives up a room, or a reader.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::classify::classify;
use super::history::{Answer, Asked, Attempt, LEASE, MILLI, Moment, SECOND, Seen, Stop};
use super::outside::{NoAnswer, Request, sleep};
use super::world::{KEY_CANARY, World};

impl World {
    pub fn client(self: &Arc<Self>) -> Client {
        let id = self.next_client.fetch_add(1, Ordering::SeqCst);
        let random = StdRng::seed_from_u64(self.seed.wrapping_mul(1_000_003).wrapping_add(id.into()));
        Client { world: self.clone(), id, random, node: id as usize % self.nodes, keys: 0 }
    }
}

/// How long one key is tried before its contender starts anew: short enough that no try of it can win a second
/// lease after the end of a first one that nobody heard of.
const KEY_LIFE: Moment = 4 * SECOND;

/// Longer than a node tries before it says that it can't decide, or doesn't know.
const PATIENCE_MAX: Moment = 6 * SECOND;

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
