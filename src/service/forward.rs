//! Carries questions to the raft leader: those that wait at a node travel together, a few requests at a time.
//!
//! Each raft leader has a line of its own. One that hangs takes all places of its own line, and none of the next raft
//! leader's, which is asked as soon as this node knows of it: then nothing more is sent to the last one, and what is
//! under way to it is given up. Its outcome is unknown; that of a question which was never sent is not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::{AskFailure, Decision, ForwardedAsk, Transport};
use crate::consensus::Consensus;
use crate::domain::{Ask, millis};
use crate::peer::path;
use crate::raft_types::{Node, NodeId};

/// How many questions one request carries.
const BATCH_MAX: usize = 256;
/// How many requests are under way to one node. More of them make smaller batches, fewer make longer waits.
const IN_FLIGHT_MAX: usize = 8;
/// How many questions may wait for one node. Each is a request that is already admitted.
const WAITING_MAX: usize = 65_536;
/// How long the way there and back may take beyond the questions' own time.
const TRAVEL_TIME: Duration = Duration::from_millis(100);
/// How long a node that isn't raft leader any more may take to answer what it was asked before. One that has handed over
/// does so at once, and its answer spares its callers an unknown outcome.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

struct Waiting {
    node: Node,
    ask: Ask,
    deadline: Instant,
    caller: oneshot::Sender<Decision>,
    /// Set by whoever comes first: the line, which then sends the question, or the caller, whose time is over.
    taken: Arc<AtomicBool>,
}

/// See the module. Cheap to clone; its tasks end with the last clone.
#[derive(Clone)]
pub struct Forwarder {
    transport: Transport,
    consensus: Consensus,
    lines: Arc<Mutex<BTreeMap<NodeId, mpsc::Sender<Waiting>>>>,
}

impl Forwarder {
    /// A forwarder without lines yet.
    pub fn new(transport: Transport, consensus: Consensus) -> Self {
        Self { transport, consensus, lines: Arc::default() }
    }

    /// Has a question decided by the node `to`.
    pub async fn forward(&self, to: NodeId, node: Node, ask: Ask, deadline: Instant) -> Decision {
        let (caller, decision) = oneshot::channel();
        let taken = Arc::new(AtomicBool::new(false));
        let waiting = Waiting { node, ask, deadline, caller, taken: taken.clone() };
        let line = self.line_to(to);
        let decided = async {
            line.send(waiting).await.ok()?;
            decision.await.ok()
        };
        match tokio::time::timeout_at(deadline, decided).await {
            Ok(Some(decision)) => decision,
            Ok(None) | Err(_) if taken.swap(true, Ordering::AcqRel) => Err(AskFailure::OutcomeUnknown),
            // It has not been sent, and will not be.
            Ok(None) | Err(_) => Err(AskFailure::NotDecided),
        }
    }

    fn line_to(&self, to: NodeId) -> mpsc::Sender<Waiting> {
        let mut lines = self.lines.lock();
        let start = || {
            let (queue, waiting) = mpsc::channel(WAITING_MAX);
            tokio::spawn(serve_line(self.transport.clone(), self.consensus.clone(), to, waiting));
            queue
        };
        lines.entry(to).or_insert_with(start).clone()
    }
}

async fn serve_line(transport: Transport, consensus: Consensus, to: NodeId, mut waiting: mpsc::Receiver<Waiting>) {
    let in_flight = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    loop {
        // A place first, then whoever waits by then: so batches grow with the load.
        let Ok(place) = in_flight.clone().acquire_owned().await else { return };
        let mut batch = Vec::new();
        if waiting.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return;
        }
        if consensus.superseded(to).now_or_never().is_some() {
            for waiting in batch {
                let _ = waiting.caller.send(Err(AskFailure::NotDecided));
            }
            continue;
        }
        let (transport, consensus) = (transport.clone(), consensus.clone());
        tokio::spawn(async move {
            send(&transport, &consensus, to, batch).await;
            drop(place);
        });
    }
}

async fn send(transport: &Transport, consensus: &Consensus, to: NodeId, batch: Vec<Waiting>) {
    let now = Instant::now();
    // Who has given up meanwhile is not asked for any more: no lease is granted to a caller long gone.
    let batch: Vec<Waiting> = batch
        .into_iter()
        .filter(|waiting| waiting.deadline > now && !waiting.caller.is_closed())
        .filter(|waiting| !waiting.taken.swap(true, Ordering::AcqRel))
        .collect();
    let Some(latest) = batch.iter().map(|waiting| waiting.deadline).max() else { return };
    let asks: Vec<ForwardedAsk> = batch
        .iter()
        .map(|waiting| ForwardedAsk { ask: waiting.ask.clone(), remaining_ms: millis(waiting.deadline - now) })
        .collect();
    let timeout = latest - now + TRAVEL_TIME;
    let sender = consensus.local().sender();
    let given_up = async {
        consensus.superseded(to).await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    let answer: Option<Result<Vec<Decision>, _>> = tokio::select! {
        biased;
        answer = transport.call(&batch[0].node.peer_address, path::FORWARD, sender, to, &asks, timeout) => Some(answer),
        () = given_up => None,
    };
    match answer {
        Some(Ok(decisions)) if decisions.len() == batch.len() => {
            for (waiting, decision) in batch.into_iter().zip(decisions) {
                let _ = waiting.caller.send(decision);
            }
        }
        other => {
            let failure = match &other {
                Some(Err(error)) if error.certainly_not_delivered() => AskFailure::NotDecided,
                _ => AskFailure::OutcomeUnknown,
            };
            match other {
                Some(Err(error)) => tracing::debug!(%error, questions = batch.len(), "not forwarded"),
                Some(Ok(_)) => {}
                None => tracing::debug!(to, questions = batch.len(), "given up: another node is raft leader"),
            }
            for waiting in batch {
                let _ = waiting.caller.send(Err(failure));
            }
        }
    }
}
