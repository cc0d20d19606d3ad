//! Carries questions to the raft leader: those that wait at a node travel together, a few requests at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::{AskFailure, Decision, ForwardedAsk, Transport};
use crate::consensus::Consensus;
use crate::domain::Ask;
use crate::peer::path;
use crate::raft_types::{Node, NodeId};

/// How many questions one request carries.
const BATCH_MAX: usize = 256;
/// How many requests are under way. More of them make smaller batches, fewer make longer waits.
const IN_FLIGHT_MAX: usize = 8;
/// How many questions may wait. Each is a request that is already admitted.
const WAITING_MAX: usize = 65_536;
/// How long the way there and back may take beyond the questions' own time.
const TRAVEL_TIME: Duration = Duration::from_millis(100);

struct Waiting {
    to: NodeId,
    node: Node,
    ask: Ask,
    deadline: Instant,
    caller: oneshot::Sender<Decision>,
}

/// See the module. Cheap to clone; its task ends with the last clone.
#[derive(Clone)]
pub struct Forwarder {
    queue: mpsc::Sender<Waiting>,
}

impl Forwarder {
    /// Starts the task that sends.
    pub fn start(transport: Transport, consensus: Consensus) -> Self {
        let (queue, mut waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(async move {
            let in_flight = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
            loop {
                // A place first, then whoever waits by then: so batches grow with the load.
                let Ok(place) = in_flight.clone().acquire_owned().await else { return };
                let mut batch = Vec::new();
                if waiting.recv_many(&mut batch, BATCH_MAX).await == 0 {
                    return;
                }
                let (transport, consensus) = (transport.clone(), consensus.clone());
                tokio::spawn(async move {
                    send(&transport, &consensus, batch).await;
                    drop(place);
                });
            }
        });
        Self { queue }
    }

    /// Has a question decided by the node `to`.
    pub async fn forward(&self, to: NodeId, node: Node, ask: Ask, deadline: Instant) -> Decision {
        let (caller, decision) = oneshot::channel();
        if self.queue.send(Waiting { to, node, ask, deadline, caller }).await.is_err() {
            return Err(AskFailure::NotDecided);
        }
        match tokio::time::timeout_at(deadline, decision).await {
            Ok(Ok(decision)) => decision,
            Ok(Err(_)) | Err(_) => Err(AskFailure::OutcomeUnknown),
        }
    }
}

async fn send(transport: &Transport, consensus: &Consensus, batch: Vec<Waiting>) {
    let mut by_target: BTreeMap<NodeId, Vec<Waiting>> = BTreeMap::new();
    for waiting in batch {
        by_target.entry(waiting.to).or_default().push(waiting);
    }
    // More than one only in the moment when the raft leader changes.
    for (to, group) in by_target {
        send_group(transport, consensus, to, group).await;
    }
}

async fn send_group(transport: &Transport, consensus: &Consensus, to: NodeId, group: Vec<Waiting>) {
    let now = Instant::now();
    // Who has given up meanwhile is not asked for any more: no lease is granted to a caller long gone.
    let group: Vec<Waiting> =
        group.into_iter().filter(|waiting| waiting.deadline > now && !waiting.caller.is_closed()).collect();
    let Some(latest) = group.iter().map(|waiting| waiting.deadline).max() else { return };
    let asks: Vec<ForwardedAsk> = group
        .iter()
        .map(|waiting| ForwardedAsk {
            ask: waiting.ask.clone(),
            remaining_ms: u64::try_from((waiting.deadline - now).as_millis()).unwrap_or(u64::MAX),
        })
        .collect();
    let timeout = latest - now + TRAVEL_TIME;
    let sender = consensus.local().sender();
    let answer: Result<Vec<Decision>, _> =
        transport.call(&group[0].node.peer_address, path::FORWARD, sender, to, &asks, timeout).await;
    match answer {
        Ok(decisions) if decisions.len() == group.len() => {
            for (waiting, decision) in group.into_iter().zip(decisions) {
                let _ = waiting.caller.send(decision);
            }
        }
        other => {
            let failure = match &other {
                Err(error) if error.certainly_not_delivered() => AskFailure::NotDecided,
                _ => AskFailure::OutcomeUnknown,
            };
            if let Err(error) = other {
                tracing::debug!(%error, questions = group.len(), "not forwarded");
            }
            for waiting in group {
                let _ = waiting.caller.send(Err(failure));
            }
        }
    }
}
