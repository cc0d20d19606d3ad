//! The sidecar: says who leads, to programs on this machine that can do no more than an HTTP GET.
//!
//! Each answer is computed from a deadline at the moment of the request. If that deadline has passed without news, the
//! leader is unknown. Older leader-elector sidecars went on to name a leader that had failed long before.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::StreamExt;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::client::{Deadline, Election, HolderClock, Observer, SystemHolderClock};
use crate::domain::millis;
use crate::wire::{Leader, WatchEvent};

/// How long a room counts as vacant without news. A node sends news each time the room changes.
const VACANCY_LASTS: Duration = Duration::from_secs(20);

/// The answers to requests, from what this process knows.
#[derive(Clone)]
pub struct Sidecar(Arc<Mutex<Known>>);

struct Known {
    room: String,
    candidate: String,
    /// Present once this process has led.
    own: Option<Observer>,
    /// The leader that a node named last, or none if the room was vacant. It counts until the deadline.
    seen: Option<(Option<Leader>, Deadline)>,
}

/// The leader at this moment.
enum LeaderNow {
    Own { term: u64, remaining: Duration },
    Other { leader: Leader, remaining: Duration },
    Vacant,
    Unknown,
}

impl Sidecar {
    /// The sidecar of a process that doesn't lead yet.
    pub fn new(room: &str, candidate: &str) -> Sidecar {
        let (room, candidate) = (room.to_owned(), candidate.to_owned());
        Sidecar(Arc::new(Mutex::new(Known { room, candidate, own: None, seen: None })))
    }

    /// Records that this process leads from now on.
    pub fn leads(&self, own: Observer) {
        self.known().own = Some(own);
    }

    /// Answers requests and watches the room, both in the background.
    pub async fn serve(&self, listen: SocketAddr, election: Election) -> std::io::Result<()> {
        let listener = tokio::net::TcpListener::bind(listen).await?;
        let routes = Router::new()
            .route("/", get(leader_name))
            .route("/is-leader", get(is_leader))
            .route("/status", get(status))
            .with_state(self.clone());
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, routes).await {
                tracing::warn!(%error, "the sidecar stopped; requests to --listen get no answer from now on");
            }
        });
        tokio::spawn(watch(self.clone(), election));
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock()
    }

    fn leader_now(&self) -> LeaderNow {
        let known = self.known();
        if let Some(own) = &known.own {
            let remaining = own.remaining();
            if !remaining.is_zero() {
                return LeaderNow::Own { term: own.term().0, remaining };
            }
        }
        let Some((leader, until)) = &known.seen else { return LeaderNow::Unknown };
        let remaining = until.remaining(SystemHolderClock.now());
        match leader {
            _ if remaining.is_zero() => LeaderNow::Unknown,
            None => LeaderNow::Vacant,
            // The lease of this process may last a little longer than its authority. In that time nobody acts.
            Some(leader) if known.own.as_ref().is_some_and(|own| own.term() == leader.term) => LeaderNow::Unknown,
            Some(leader) => LeaderNow::Other { leader: leader.clone(), remaining },
        }
    }
}

async fn watch(sidecar: Sidecar, election: Election) {
    let mut events = Box::pin(election.watch());
    while let Some(Ok(WatchEvent { leader, retry_after_ms, .. })) = events.next().await {
        let lasts = if leader.is_some() { Duration::from_millis(retry_after_ms) } else { VACANCY_LASTS };
        sidecar.known().seen = Some((leader, Deadline::new(SystemHolderClock.now(), lasts)));
    }
}

async fn leader_name(State(sidecar): State<Sidecar>) -> Response {
    match sidecar.leader_now() {
        LeaderNow::Own { .. } => text(StatusCode::OK, &sidecar.known().candidate),
        LeaderNow::Other { leader, .. } => text(StatusCode::OK, leader.candidate_id.as_str()),
        LeaderNow::Vacant => text(StatusCode::NOT_FOUND, "vacant"),
        LeaderNow::Unknown => text(StatusCode::SERVICE_UNAVAILABLE, "unknown"),
    }
}

async fn is_leader(State(sidecar): State<Sidecar>) -> Response {
    match sidecar.leader_now() {
        LeaderNow::Own { .. } => text(StatusCode::OK, "true"),
        _ => text(StatusCode::CONFLICT, "false"),
    }
}

async fn status(State(sidecar): State<Sidecar>) -> Response {
    let leader_now = sidecar.leader_now();
    let (room, candidate) = {
        let known = sidecar.known();
        (known.room.clone(), known.candidate.clone())
    };
    let (status, leader, term, remaining) = match leader_now {
        LeaderNow::Own { term, remaining } => ("leader", json!(candidate), json!(term), remaining),
        LeaderNow::Other { leader, remaining } => {
            ("follower", json!(leader.candidate_id), json!(leader.term), remaining)
        }
        LeaderNow::Vacant => ("vacant", Value::Null, Value::Null, Duration::ZERO),
        LeaderNow::Unknown => ("unknown", Value::Null, Value::Null, Duration::ZERO),
    };
    let body = json!({
        "election_id": room, "candidate_id": candidate, "is_leader": status == "leader", "status": status,
        "leader": leader, "term": term, "remaining_ms": millis(remaining),
    });
    answer(StatusCode::OK, "application/json", body.to_string())
}

fn text(status: StatusCode, body: &str) -> Response {
    answer(status, "text/plain; charset=utf-8", format!("{body}\n"))
}

fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")], body).into_response()
}
