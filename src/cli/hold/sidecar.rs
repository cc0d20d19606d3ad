//! Who leads, for programs on this machine that can do no more than an HTTP GET.
//!
//! Each answer is computed from a deadline when it is asked for. What has passed its deadline without news is
//! unknown, never stale: the leader-elector sidecars of old went on naming leaders that were long gone.

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
use crate::wire::{Leader, WatchEvent};

/// How long a vacant room counts as vacant without news. A node sends some each time the room changes.
const VACANCY_LASTS: Duration = Duration::from_secs(20);

/// What this process knows.
#[derive(Clone)]
pub struct Sidecar(Arc<Mutex<Known>>);

struct Known {
    room: String,
    candidate: String,
    own: Option<Observer>,
    /// What a node said last, and how long it may be believed.
    seen: Option<(Option<Leader>, Deadline)>,
}

/// What can be said now.
enum View {
    Own { term: u64, remaining: Duration },
    Other { leader: Leader, remaining: Duration },
    Vacant,
    Unknown,
}

impl Sidecar {
    /// Of a process that doesn't lead yet.
    pub fn new(room: &str, candidate: &str) -> Sidecar {
        let (room, candidate) = (room.to_owned(), candidate.to_owned());
        Sidecar(Arc::new(Mutex::new(Known { room, candidate, own: None, seen: None })))
    }

    /// Now it does.
    pub fn leads(&self, own: Observer) {
        self.known().own = Some(own);
    }

    /// Listens, and watches the room, in the background.
    pub async fn serve(&self, listen: SocketAddr, election: Election) -> std::io::Result<()> {
        let listener = tokio::net::TcpListener::bind(listen).await?;
        let routes = Router::new()
            .route("/", get(leader_name))
            .route("/is-leader", get(is_leader))
            .route("/status", get(status))
            .with_state(self.clone());
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, routes).await {
                tracing::warn!(%error, "the sidecar stopped");
            }
        });
        tokio::spawn(watch(self.clone(), election));
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock()
    }

    fn view(&self) -> View {
        let known = self.known();
        if let Some(own) = &known.own {
            let remaining = own.remaining();
            if !remaining.is_zero() {
                return View::Own { term: own.term().0, remaining };
            }
        }
        let Some((leader, until)) = &known.seen else { return View::Unknown };
        let remaining = until.remaining(SystemHolderClock.now());
        match leader {
            _ if remaining.is_zero() => View::Unknown,
            None => View::Vacant,
            // Its own lease may live on after its authority has ended; then nobody acts.
            Some(leader) if known.own.as_ref().is_some_and(|own| own.term() == leader.term) => View::Unknown,
            Some(leader) => View::Other { leader: leader.clone(), remaining },
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
    match sidecar.view() {
        View::Own { .. } => text(StatusCode::OK, &sidecar.known().candidate),
        View::Other { leader, .. } => text(StatusCode::OK, leader.candidate_id.as_str()),
        View::Vacant => text(StatusCode::NOT_FOUND, "vacant"),
        View::Unknown => text(StatusCode::SERVICE_UNAVAILABLE, "unknown"),
    }
}

async fn is_leader(State(sidecar): State<Sidecar>) -> Response {
    match sidecar.view() {
        View::Own { .. } => text(StatusCode::OK, "true"),
        _ => text(StatusCode::CONFLICT, "false"),
    }
}

async fn status(State(sidecar): State<Sidecar>) -> Response {
    let view = sidecar.view();
    let (room, candidate) = {
        let known = sidecar.known();
        (known.room.clone(), known.candidate.clone())
    };
    let (status, leader, term, remaining) = match view {
        View::Own { term, remaining } => ("leader", json!(candidate), json!(term), millis(remaining)),
        View::Other { leader, remaining } => {
            ("follower", json!(leader.candidate_id), json!(leader.term), millis(remaining))
        }
        View::Vacant => ("vacant", Value::Null, Value::Null, json!(0)),
        View::Unknown => ("unknown", Value::Null, Value::Null, json!(0)),
    };
    let body = json!({
        "election_id": room, "candidate_id": candidate, "is_leader": status == "leader", "status": status,
        "leader": leader, "term": term, "remaining_ms": remaining,
    });
    answer(StatusCode::OK, "application/json", body.to_string())
}

fn millis(duration: Duration) -> Value {
    json!(crate::domain::millis(duration))
}

fn text(status: StatusCode, body: &str) -> Response {
    answer(status, "text/plain; charset=utf-8", format!("{body}\n"))
}

fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")], body).into_response()
}
