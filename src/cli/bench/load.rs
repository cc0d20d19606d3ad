//! The load: connections that send a request, wait for the answer, and send the next one.

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
use crate::domain::LeaseDuration;
use crate::random::{SystemRandom, random_bytes};

/// No request waits longer than this for its answer.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// How long the preparation of one room is retried: a raft election may be going on, or the rate limit may be reached.
const PREPARE_DEADLINE: Duration = Duration::from_secs(30);

/// A connection pauses after a failure. Otherwise fast failures would become a flood of requests.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);

/// For rooms that must stay held for a whole run.
const HELD_TTL_SECONDS: u16 = LeaseDuration::SECONDS_MAX;
/// For rooms that are won once and not used again.
const SHORT_TTL_SECONDS: u16 = LeaseDuration::SECONDS_MIN;

/// A cluster under load.
pub struct Load {
    urls: Vec<String>,
    duration: Duration,
    rooms: usize,
    /// The names of this benchmark's rooms begin with it, so they differ from all other names.
    prefix: String,
    /// For preparation and cleaning up. Each measured connection has a client of its own.
    client: Client,
}

impl Load {
    pub fn new(urls: Vec<String>, duration: Duration, rooms: usize) -> anyhow::Result<Load> {
        let prefix = format!("bench-{}", URL_SAFE_NO_PAD.encode(random_bytes::<9>(&SystemRandom)));
        Ok(Load { urls, duration, rooms, prefix, client: http_client(REQUEST_DEADLINE)? })
    }

    /// Runs one operation on `connections` connections for the time of `--duration`.
    pub async fn run(&self, op: Op, connections: usize) -> anyhow::Result<Sample> {
        let held = self.prepare_rooms(op, connections).await.context("the rooms of the run can't be prepared")?;
        let workers = (0..connections).map(|index| self.connect(op, index, connections, &held));
        let workers = try_join_all(workers).await.context("a connection can't be opened")?;
        let started = Instant::now();
        let until = started + self.duration;
        let running: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(worker.work(until))).collect();
        let mut all = Sample::new();
        for sample in join_all(running).await {
            all.merge(&sample.context("a connection ended with a panic")?);
        }
        all.elapsed = started.elapsed();
        self.resign_all(&held).await;
        Ok(all)
    }

    /// Wins the rooms that must be held during a run.
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
            held.push(self.win(format!("{url}/elections/{room}")).await?);
        }
        Ok(held)
    }

    async fn win(&self, url: String) -> anyhow::Result<HeldRoom> {
        let give_up_at = Instant::now() + PREPARE_DEADLINE;
        loop {
            let request = campaign(&self.client, &url, "bench-holder", HELD_TTL_SECONDS);
            match send(request).await {
                Ok(Answer { leader_token: Some(token), .. }) => return Ok(HeldRoom { url, token }),
                Ok(_) => return Err(anyhow!("somebody else leads the new room {url}; run the benchmark again")),
                Err(failed) if failed.is_temporary && Instant::now() + failed.pause() < give_up_at => {
                    tokio::time::sleep(failed.pause()).await;
                }
                Err(failed) if failed.code == "rate_limited" => {
                    return Err(anyhow!(
                        "{url} answers 429 rate_limited; start each node with a higher --campaigns-per-minute"
                    ));
                }
                Err(failed) => return Err(anyhow!("{url}: {}", failed.code)),
            }
        }
    }

    /// Opens a connection before the run, so that no measured request includes that.
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

    /// Gives the held rooms up, because their leases would last for minutes. If that fails, they expire by themselves.
    async fn resign_all(&self, held: &[HeldRoom]) {
        for room in held {
            let request = self.client.post(format!("{}/resign", room.url)).json(&json!({"leader_token": room.token}));
            if send(request).await.is_err_and(|failed| failed.is_temporary) {
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

/// A connection, and the operation that it repeats.
struct Worker {
    op: Op,
    client: Client,
    /// URL of the new rooms of this connection, without the number at its end.
    rooms: String,
    /// The room that this connection uses, for operations on held rooms.
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
            match send(request).await.and_then(|answer| self.expect(&answer)) {
                Ok(()) => sample.add_success(sent.elapsed()),
                Err(failed) => {
                    sample.add_error(failed.code);
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
            (Op::Lose, Some(room)) => campaign(&self.client, &room.url, &self.contender, SHORT_TTL_SECONDS),
            (Op::Status, Some(room)) => self.client.request(Method::GET, &room.url),
            (Op::Campaign, _) | (_, None) => {
                self.rooms_won += 1;
                let url = format!("{}-{}", self.rooms, self.rooms_won);
                campaign(&self.client, &url, &self.contender, SHORT_TTL_SECONDS)
            }
        }
    }

    /// Checks the answer: a fast wrong answer must not count as a success.
    fn expect(&self, answer: &Answer) -> Result<(), Failed> {
        let expected = if self.op == Op::Lose { "follower" } else { "leader" };
        if answer.status == expected {
            return Ok(());
        }
        Err(Failed::with_code(&format!("unexpected_{}", answer.status)))
    }
}

fn campaign(client: &Client, url: &str, contender: &str, ttl_seconds: u16) -> RequestBuilder {
    let body = json!({"candidate_id": contender, "ttl_seconds": ttl_seconds});
    client.post(format!("{url}/campaign")).json(&body)
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    leader_token: Option<String>,
}

/// Why an operation didn't succeed.
#[derive(Debug)]
struct Failed {
    /// The code in the node's answer, or a code of this program if no node has answered.
    code: String,
    /// Whether the same request may succeed later.
    is_temporary: bool,
    retry_after: Option<Duration>,
}

impl Failed {
    fn with_code(code: &str) -> Failed {
        Failed { code: code.to_owned(), is_temporary: false, retry_after: None }
    }

    fn pause(&self) -> Duration {
        self.retry_after.unwrap_or(Duration::from_millis(200))
    }
}

async fn send(request: RequestBuilder) -> Result<Answer, Failed> {
    let response = request.send().await.map_err(|error| transport_failure(&error))?;
    let status = response.status();
    let body = response.bytes().await.map_err(|error| transport_failure(&error))?;
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|_| Failed::with_code("not_an_answer"));
    }
    let error: Value = serde_json::from_slice(&body).unwrap_or_default();
    Err(Failed {
        code: error["code"].as_str().map_or_else(|| format!("http_{}", status.as_u16()), str::to_owned),
        is_temporary: matches!(status.as_u16(), 429 | 503),
        retry_after: error["retry_after_ms"].as_u64().map(Duration::from_millis),
    })
}

fn transport_failure(error: &reqwest::Error) -> Failed {
    Failed::with_code(if error.is_timeout() {
        "timeout"
    } else if error.is_connect() {
        "not_connected"
    } else {
        "broken_connection"
    })
}
