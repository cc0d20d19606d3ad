//! The load itself: connections that ask, wait for the answer and ask again.

use std::time::Duration;

use tokio::time::Instant;

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::{join_all, try_join_all};
use reqwest::{Client, Method, RequestBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::op::Op;
use super::report::Sample;
use crate::cli::connect::http_client;
use crate::random::{SystemRandom, random_bytes};

/// Nothing waits longer than this for an answer.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// Preparing is done over until it works: a cluster may be between two raft leaders, or at its rate limit.
const PREPARE_DEADLINE: Duration = Duration::from_secs(30);

/// After a failure a connection pauses, so that refusals, which are cheap, don't become a flood.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);

/// The longest lease there is, for rooms that must stay held for a whole run.
const HELD_TTL_SECONDS: u64 = 300;
/// The shortest lease there is, for rooms that are won once and forgotten.
const FORGOTTEN_TTL_SECONDS: u64 = 5;

/// A cluster under load.
pub struct Load {
    urls: Vec<String>,
    duration: Duration,
    rooms: usize,
    /// Keeps the rooms of this benchmark apart from all others.
    prefix: String,
    /// Prepares and cleans up; each measured connection has a client of its own.
    client: Client,
}

impl Load {
    pub fn new(urls: Vec<String>, duration: Duration, rooms: usize) -> anyhow::Result<Load> {
        let prefix = format!("bench-{}", URL_SAFE_NO_PAD.encode(random_bytes::<9>(&SystemRandom)));
        Ok(Load { urls, duration, rooms, prefix, client: http_client(REQUEST_DEADLINE)? })
    }

    /// Runs one op on `connections` connections for the time given.
    pub async fn run(&self, op: Op, connections: usize) -> anyhow::Result<Sample> {
        let held = self.prepare_rooms(op, connections).await.context("the run can't be prepared")?;
        let workers = (0..connections).map(|index| self.connect(op, index, connections, &held));
        let workers = try_join_all(workers).await.context("a connection can't be opened")?;
        let started = Instant::now();
        let until = started + self.duration;
        let running: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(worker.work(until))).collect();
        let mut all = Sample::new();
        for sample in join_all(running).await {
            all.merge(&sample.context("a connection stopped working")?);
        }
        all.elapsed = started.elapsed();
        self.give_up(&held).await;
        Ok(all)
    }

    /// Wins the rooms that a run needs held, by whom doesn't matter.
    async fn prepare_rooms(&self, op: Op, connections: usize) -> anyhow::Result<Vec<HeldRoom>> {
        let count = match op {
            Op::Campaign => 0,
            Op::Renew => connections,
            Op::Lose | Op::Status => self.rooms,
        };
        let mut held = Vec::with_capacity(count);
        for index in 0..count {
            let url = &self.urls[index % self.urls.len()];
            let room = format!("{}-{}-{connections}-{index}", self.prefix, op.name());
            held.push(self.hold(format!("{url}/elections/{room}")).await?);
        }
        Ok(held)
    }

    async fn hold(&self, url: String) -> anyhow::Result<HeldRoom> {
        let give_up_at = Instant::now() + PREPARE_DEADLINE;
        loop {
            let request = campaign(&self.client, &url, "bench-holder", HELD_TTL_SECONDS);
            match ask(request).await {
                Ok(Answer { leader_token: Some(token), .. }) => return Ok(HeldRoom { url, token }),
                Ok(_) => return Err(anyhow!("the new room {url} is already held")),
                Err(refusal) if refusal.may_pass && Instant::now() + refusal.pause() < give_up_at => {
                    tokio::time::sleep(refusal.pause()).await;
                }
                Err(refusal) if refusal.code == "rate_limited" => {
                    return Err(anyhow!(
                        "{url}: 429 rate_limited; start each node with a higher --campaigns-per-minute"
                    ));
                }
                Err(refusal) => return Err(anyhow!("{url}: {}", refusal.code)),
            }
        }
    }

    /// Opens a connection, so that no measured request has to.
    async fn connect(&self, op: Op, index: usize, connections: usize, held: &[HeldRoom]) -> anyhow::Result<Worker> {
        let base = self.urls[index % self.urls.len()].clone();
        let client = http_client(REQUEST_DEADLINE)?;
        client.get(format!("{base}/livez")).send().await?.bytes().await?;
        let rooms = format!("{base}/elections/{}-{connections}-{index}", self.prefix);
        let held = (!held.is_empty()).then(|| {
            let room = &held[index % held.len()];
            let name = room.url.rsplit('/').next().unwrap_or_default();
            HeldRoom { url: format!("{base}/elections/{name}"), token: room.token.clone() }
        });
        Ok(Worker { op, client, rooms, held, contender: format!("bench-{index}"), rooms_won: 0 })
    }

    /// Leaves nothing behind that would live for minutes. A room that can't be given up expires all the same.
    async fn give_up(&self, held: &[HeldRoom]) {
        for room in held {
            let request = self.client.post(format!("{}/resign", room.url)).json(&json!({"leader_token": room.token}));
            if ask(request).await.is_err_and(|refusal| refusal.may_pass) {
                return;
            }
        }
    }
}

/// A room that this benchmark holds.
struct HeldRoom {
    url: String,
    token: String,
}

/// One connection.
struct Worker {
    op: Op,
    client: Client,
    /// Where this connection's new rooms are, but for a number at the end.
    rooms: String,
    held: Option<HeldRoom>,
    contender: String,
    rooms_won: u64,
}

impl Worker {
    async fn work(mut self, until: Instant) -> Sample {
        let mut sample = Sample::new();
        while Instant::now() < until {
            let request = self.next_request();
            let sent = Instant::now();
            match ask(request).await.and_then(|answer| self.expect(&answer)) {
                Ok(()) => sample.add_success(sent.elapsed()),
                Err(refusal) => {
                    sample.add_error(refusal.code);
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                }
            }
        }
        sample
    }

    fn next_request(&mut self) -> RequestBuilder {
        match (self.op, &self.held) {
            (Op::Renew, Some(room)) => {
                self.client.post(format!("{}/renew", room.url)).json(&json!({"leader_token": room.token}))
            }
            (Op::Lose, Some(room)) => campaign(&self.client, &room.url, &self.contender, FORGOTTEN_TTL_SECONDS),
            (Op::Status, Some(room)) => self.client.request(Method::GET, &room.url),
            (Op::Campaign, _) | (_, None) => {
                self.rooms_won += 1;
                let url = format!("{}-{}", self.rooms, self.rooms_won);
                campaign(&self.client, &url, &self.contender, FORGOTTEN_TTL_SECONDS)
            }
        }
    }

    /// A fast answer that isn't the right one must not count.
    fn expect(&self, answer: &Answer) -> Result<(), Refusal> {
        let expected = if self.op == Op::Lose { "follower" } else { "leader" };
        if answer.status == expected {
            return Ok(());
        }
        Err(Refusal { code: format!("unexpected_{}", answer.status), may_pass: false, retry_after: None })
    }
}

fn campaign(client: &Client, url: &str, contender: &str, ttl_seconds: u64) -> RequestBuilder {
    let body = json!({"candidate_id": contender, "ttl_seconds": ttl_seconds});
    client.post(format!("{url}/campaign")).json(&body)
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    leader_token: Option<String>,
}

/// Why an op didn't succeed.
#[derive(Debug)]
struct Refusal {
    /// The server's code, or a word of ours where no server spoke.
    code: String,
    /// Whether it is a matter of time.
    may_pass: bool,
    retry_after: Option<Duration>,
}

impl Refusal {
    fn ours(code: &str) -> Refusal {
        Refusal { code: code.to_owned(), may_pass: false, retry_after: None }
    }

    fn pause(&self) -> Duration {
        self.retry_after.unwrap_or(Duration::from_millis(200))
    }
}

async fn ask(request: RequestBuilder) -> Result<Answer, Refusal> {
    let response = request.send().await.map_err(|error| transport_failure(&error))?;
    let status = response.status();
    let body = response.bytes().await.map_err(|error| transport_failure(&error))?;
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|_| Refusal::ours("not_an_answer"));
    }
    let error: Value = serde_json::from_slice(&body).unwrap_or_default();
    Err(Refusal {
        code: error["code"].as_str().map_or_else(|| format!("http_{}", status.as_u16()), str::to_owned),
        may_pass: matches!(status.as_u16(), 429 | 503),
        retry_after: error["retry_after_ms"].as_u64().map(Duration::from_millis),
    })
}

fn transport_failure(error: &reqwest::Error) -> Refusal {
    Refusal::ours(if error.is_timeout() {
        "timeout"
    } else if error.is_connect() {
        "not_connected"
    } else {
        "broken_connection"
    })
}
