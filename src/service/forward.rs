//! Carries operations to the raft leader. Operations that wait at this node travel together, in a few requests at a
//! time.
//!
//! Each raft leader has its own queue and its own in-flight limit, so one that hangs cannot delay the next. When
//! another node becomes raft leader, operations that were not sent yet fail as "nothing proposed". Operations that were
//! sent get a little time for their answers, and then fail as "outcome unknown".

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use crate::consensus::Consensus;
use crate::domain::{Operation, millis};
use crate::peer::{Decision, ForwardedOperation, Transport, Undecided, path};
use crate::raft_types::{Node, NodeId};

/// One request carries at most this many operations.
const BATCH_MAX: usize = 256;
/// At most this many requests to one node are in flight. With more, the batches would be smaller. With fewer,
/// operations would wait longer.
const IN_FLIGHT_MAX: usize = 8;
/// At most this many operations wait for one node. Each one is a request that was admitted already.
const QUEUED_MAX: usize = 65_536;
/// The time for the way there and back, in addition to the operations' own time.
const TRAVEL_TIME: Duration = Duration::from_millis(100);
/// A node that is no longer raft leader gets this long to answer earlier operations. After a hand-over it answers at
/// once, and that saves the callers an unknown outcome.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

struct Queued {
    node: Node,
    operation: Operation,
    deadline: Instant,
    caller: oneshot::Sender<Decision>,
    /// The queue sets it when it sends the operation, and the caller sets it when its time is over. The first one
    /// counts.
    taken: Arc<AtomicBool>,
}

/// Carries operations to the raft leader. Cheap to clone. Its tasks end with the last clone.
#[derive(Clone)]
pub struct Forwarder {
    transport: Transport,
    consensus: Consensus,
    queues: Arc<Mutex<BTreeMap<NodeId, mpsc::Sender<Queued>>>>,
}

impl Forwarder {
    /// A forwarder without queues yet.
    pub fn new(transport: Transport, consensus: Consensus) -> Self {
        Self { transport, consensus, queues: Arc::default() }
    }

    /// Gets an operation decided by the node `to`.
    pub async fn forward(&self, to: NodeId, node: Node, operation: Operation, deadline: Instant) -> Decision {
        let (caller, decision) = oneshot::channel();
        let taken = Arc::new(AtomicBool::new(false));
        let queued = Queued { node, operation, deadline, caller, taken: taken.clone() };
        let queue = self.queue_to(to);
        let decided = async {
            queue.send(queued).await.ok()?;
            decision.await.ok()
        };
        match tokio::time::timeout_at(deadline, decided).await {
            Ok(Some(decision)) => decision,
            Ok(None) | Err(_) if taken.swap(true, Ordering::AcqRel) => Err(Undecided::OutcomeUnknown),
            // It was not sent, and will not be.
            Ok(None) | Err(_) => Err(Undecided::NothingProposed),
        }
    }

    fn queue_to(&self, to: NodeId) -> mpsc::Sender<Queued> {
        let start = || {
            let (queue, queued) = mpsc::channel(QUEUED_MAX);
            tokio::spawn(serve_queue(self.transport.clone(), self.consensus.clone(), to, queued));
            queue
        };
        self.queues.lock().entry(to).or_insert_with(start).clone()
    }
}

async fn serve_queue(transport: Transport, consensus: Consensus, to: NodeId, mut queued: mpsc::Receiver<Queued>) {
    let in_flight = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    loop {
        // First a place in flight, then all operations that wait by then. So batches grow with the load.
        let Ok(place) = in_flight.clone().acquire_owned().await else { return };
        let mut batch = Vec::new();
        if queued.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return;
        }
        if consensus.superseded(to).now_or_never().is_some() {
            answer_all(batch, Undecided::NothingProposed);
            continue;
        }
        let (transport, consensus) = (transport.clone(), consensus.clone());
        tokio::spawn(async move {
            send(&transport, &consensus, to, batch).await;
            drop(place);
        });
    }
}

async fn send(transport: &Transport, consensus: &Consensus, to: NodeId, batch: Vec<Queued>) {
    let now = Instant::now();
    // An operation whose caller has given up is not sent, so that no lease is granted to a caller long gone.
    let batch: Vec<Queued> = batch
        .into_iter()
        .filter(|queued| queued.deadline > now && !queued.caller.is_closed())
        .filter(|queued| !queued.taken.swap(true, Ordering::AcqRel))
        .collect();
    let Some(latest) = batch.iter().map(|queued| queued.deadline).max() else { return };
    let forwarded = |queued: &Queued| ForwardedOperation {
        operation: queued.operation.clone(),
        remaining_ms: millis(queued.deadline - now),
    };
    let operations: Vec<_> = batch.iter().map(forwarded).collect();
    let (address, sender) = (&batch[0].node.peer_address, consensus.local().sender());
    let timeout = latest - now + TRAVEL_TIME;
    let given_up = async {
        consensus.superseded(to).await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    let answer: Option<Result<Vec<Decision>, _>> = tokio::select! {
        biased;
        answer = transport.call(address, path::FORWARD, sender, to, &operations, timeout) => Some(answer),
        () = given_up => None,
    };
    match answer {
        Some(Ok(decisions)) if decisions.len() == batch.len() => {
            for (queued, decision) in batch.into_iter().zip(decisions) {
                let _ = queued.caller.send(decision);
            }
        }
        Some(Ok(decisions)) => {
            let (operations, decisions) = (batch.len(), decisions.len());
            tracing::warn!(to, operations, decisions, "the raft leader sent a wrong number of decisions");
            answer_all(batch, Undecided::OutcomeUnknown);
        }
        Some(Err(error)) => {
            tracing::debug!(%error, operations = batch.len(), "operations were not forwarded, or not answered");
            let did_nothing = error.certainly_did_nothing();
            answer_all(batch, if did_nothing { Undecided::NothingProposed } else { Undecided::OutcomeUnknown });
        }
        None => {
            tracing::debug!(to, operations = batch.len(), "gave up waiting for answers: another node is raft leader");
            answer_all(batch, Undecided::OutcomeUnknown);
        }
    }
}

fn answer_all(batch: Vec<Queued>, undecided: Undecided) {
    for queued in batch {
        let _ = queued.caller.send(Err(undecided));
    }
}
