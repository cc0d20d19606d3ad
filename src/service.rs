//! One method for each thing that a user can do with a room.
//!
//! Any node serves any request. The one that was called makes secrets, waits and watches; the raft leader
//! decides. Two kinds of failure are never mixed: nothing was proposed ([`ServiceError::Unavailable`]), and
//! anything after that ([`ServiceError::OutcomeUnknown`]).

mod answers;
mod decide;
mod error;
mod forward;
mod secrets;
mod tries;
mod waiting;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use answers::{
    CampaignAnswer, CampaignRequest, Consistency, Decided, Holding, MemberStatus, NodeStatus, RenewRequest,
    ResignRequest,
};
pub use error::ServiceError;
pub use secrets::{IdempotencyKey, LeaseSecret};
pub use watch::RoomWatch;

use crate::consensus::Consensus;
use crate::domain::{
    Ask, Campaign, FencingToken, LeaseDuration, Limits, Nonce, Outcome, Refusal, Renew, Resign, RoomId, RoomView,
};
use crate::peer::{AskFailure, Decision, ForwardedAsk, Transport};
use crate::random::{Random, random_bytes};
use forward::Forwarder;
use tries::Tries;
use waiting::Queues;

/// What the service has to know beside the cluster.
#[derive(Debug, Clone, Copy)]
pub struct ServiceSettings {
    /// How long a request may take.
    pub request_deadline: Duration,
    /// How many leases may live at once.
    pub live_leases_max: u64,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        // Five seconds outlast a raft election and a retry after it.
        Self { request_deadline: Duration::from_secs(5), live_leases_max: 100_000 }
    }
}

/// The rooms, as one node serves them. Cheap to clone.
#[derive(Clone)]
pub struct RoomService {
    consensus: Consensus,
    forwarder: Forwarder,
    queues: Arc<Queues>,
    random: Arc<dyn Random>,
    settings: ServiceSettings,
}

impl RoomService {
    /// The service of one node.
    pub fn new(consensus: Consensus, transport: Transport, random: Arc<dyn Random>, settings: ServiceSettings) -> Self {
        let forwarder = Forwarder::new(transport, consensus.clone());
        Self { consensus, forwarder, queues: Arc::default(), random, settings }
    }

    /// Tries to get the room, and waits for it if asked to.
    ///
    /// # Errors
    /// See [`ServiceError`]. That somebody else holds the room is not an error.
    pub async fn campaign(&self, request: CampaignRequest) -> Result<Decided<CampaignAnswer>, ServiceError> {
        let tries = Arc::new(Tries::new(request, &*self.random));
        let answer = match tries.request.wait.is_zero() {
            true => self.campaign_once(&tries).await,
            false => self.campaign_waiting(&tries).await,
        };
        match answer {
            // The last try changed nothing, and an earlier one may have, or may yet.
            Err(ServiceError::Unavailable { .. }) if tries.maybe_won() => Err(ServiceError::OutcomeUnknown),
            answer => answer,
        }
    }

    /// One try.
    async fn campaign_once(&self, tries: &Tries) -> Result<Decided<CampaignAnswer>, ServiceError> {
        let Tries { request, key, .. } = tries;
        let CampaignRequest { room, contender, metadata, lease_duration, .. } = request;
        let nonce = Nonce(random_bytes(&*self.random));
        let secret = key.secret_for(room, contender, nonce);
        let ask = Ask::Campaign(Campaign {
            room: room.clone(),
            contender: contender.clone(),
            metadata: metadata.clone(),
            lease_duration: *lease_duration,
            secret_hash: secret.hash(),
            nonce,
        });
        let submitted = self.submit(ask, self.settings.request_deadline).await;
        tries.note(&submitted);
        let submitted = submitted?;
        let answer = match submitted.outcome {
            Outcome::Granted(view) => CampaignAnswer::Won(holding(view, secret)),
            Outcome::Occupied(view) => {
                // It may be the caller that holds it, by a request whose answer was lost on the way.
                let own = view.lease.as_ref().and_then(|lease| key.recognise(room, contender, lease));
                match own {
                    Some(secret) => CampaignAnswer::Won(holding(view, secret)),
                    None => CampaignAnswer::Follower(view),
                }
            }
            Outcome::Refused(Refusal::CapacityReached) => return Err(self.capacity_reached()),
            other => return Err(unexpected("campaign", &other)),
        };
        Ok(Decided { answer, decided_by: submitted.decided_by })
    }

    /// Extends the caller's lease.
    ///
    /// # Errors
    /// `NotHolder` if the secret is not that of the current lease, and others as in [`ServiceError`].
    pub async fn renew(&self, request: RenewRequest) -> Result<Decided<Holding>, ServiceError> {
        let RenewRequest { room, secret, lease_duration, metadata } = request;
        let duration = lease_duration.or_else(|| self.local_duration(&room)).unwrap_or(DEFAULT_LEASE_DURATION);
        // So that a caller whose node is cut off can still try the other two before its lease ends.
        let deadline = self.settings.request_deadline.min(duration.as_duration() / 3);
        let ask = Ask::Renew(Renew { room, secret_hash: secret.hash(), lease_duration, metadata });
        let submitted = self.submit(ask, deadline).await?;
        match submitted.outcome {
            Outcome::Renewed(view) => Ok(Decided { answer: renewed(view, secret), decided_by: submitted.decided_by }),
            Outcome::Refused(Refusal::NotHolder) => Err(ServiceError::NotHolder),
            other => Err(unexpected("renew", &other)),
        }
    }

    /// Ends the caller's lease, and says under which token it was held.
    ///
    /// # Errors
    /// `NotHolder` if the secret is not that of the current lease, and others as in [`ServiceError`].
    pub async fn resign(&self, request: ResignRequest) -> Result<Decided<FencingToken>, ServiceError> {
        let ask = Ask::Resign(Resign { room: request.room, secret_hash: request.secret.hash() });
        let submitted = self.submit(ask, self.settings.request_deadline).await?;
        match submitted.outcome {
            Outcome::Resigned(token) => Ok(Decided { answer: token, decided_by: submitted.decided_by }),
            // The first of two tries may be what ended the lease, so this is no proof that the caller had lost it.
            Outcome::Refused(Refusal::NotHolder) if submitted.maybe_done_before => Err(ServiceError::OutcomeUnknown),
            Outcome::Refused(Refusal::NotHolder) => Err(ServiceError::NotHolder),
            other => Err(unexpected("resign", &other)),
        }
    }

    /// Looks at a room.
    ///
    /// # Errors
    /// `Unavailable` if a linearizable read can't be had; a local one always can.
    pub async fn view(&self, room: &RoomId, consistency: Consistency) -> Result<Decided<RoomView>, ServiceError> {
        match consistency {
            Consistency::Local => {
                Ok(Decided { answer: self.consensus.replica().view(room), decided_by: self.name().to_owned() })
            }
            Consistency::Linearizable => {
                let submitted = self.submit(Ask::View(room.clone()), self.settings.request_deadline).await?;
                match submitted.outcome {
                    Outcome::Viewed(view) => Ok(Decided { answer: view, decided_by: submitted.decided_by }),
                    other => Err(unexpected("view", &other)),
                }
            }
        }
    }

    /// A stream of views of a room: one now, and one at each change.
    pub fn watch(&self, room: &RoomId) -> RoomWatch {
        RoomWatch::new(self.consensus.clone(), room)
    }

    /// How this node stands.
    pub fn status(&self) -> NodeStatus {
        let raft = self.consensus.status();
        let position = self.consensus.replica().position();
        let local = self.consensus.local();
        let name_of = |id| raft.members.iter().find(|(member, ..)| *member == id).map(|(_, node, _)| node.name.clone());
        NodeStatus {
            name: local.node().name.clone(),
            node_id: local.node_id(),
            cluster_id: local.cluster_id().map(|id| id.to_string()),
            role: raft.role,
            raft_leader: raft.raft_leader.and_then(name_of),
            raft_term: raft.raft_term,
            last_log_index: raft.last_log_index,
            committed_index: raft.committed_index,
            applied_index: position.applied.map_or(0, |log_id| log_id.index),
            state_digest: position.digest.to_string(),
            live_leases: position.live_leases,
            log_entries_written: raft.log_entries_written,
            log_flushes: raft.log_flushes,
            members: raft
                .members
                .iter()
                .map(|(node_id, node, voter)| MemberStatus {
                    name: node.name.clone(),
                    node_id: *node_id,
                    client_url: node.client_url.clone(),
                    peer_address: node.peer_address.clone(),
                    voter: *voter,
                })
                .collect(),
            readiness: self.readiness(),
        }
    }

    /// Whether the process and its storage work, whatever the other nodes do.
    pub fn is_alive(&self) -> bool {
        self.consensus.is_running()
    }

    /// Whether this node can serve a linearizable request now, or why not.
    pub fn readiness(&self) -> Result<(), String> {
        self.consensus.readiness()
    }

    /// The other nodes' questions, decided here if this node is raft leader. They are never sent on.
    pub async fn decide_for_peer(&self, asks: Vec<ForwardedAsk>) -> Vec<Decision> {
        let now = Instant::now();
        let decisions = asks.into_iter().map(|ForwardedAsk { ask, remaining_ms }| async move {
            let remaining = Duration::from_millis(remaining_ms).min(self.settings.request_deadline);
            self.decide(&ask, now + remaining).await
        });
        futures::future::join_all(decisions).await
    }

    fn limits(&self) -> Limits {
        Limits { live_leases_max: self.settings.live_leases_max }
    }

    fn name(&self) -> &str {
        &self.consensus.local().node().name
    }

    fn local_duration(&self, room: &RoomId) -> Option<LeaseDuration> {
        self.consensus.replica().view(room).lease.map(|lease| lease.lease_duration)
    }

    fn capacity_reached(&self) -> ServiceError {
        let (next_deadline, now) = self.consensus.replica().next_deadline();
        let retry_after = next_deadline.map_or(Duration::from_secs(1), |deadline| deadline.since(now));
        ServiceError::CapacityReached { retry_after: retry_after.max(Duration::from_millis(100)) }
    }
}

/// How long a lease lasts if neither the request nor the lease says: 30 s, the wire's default.
const DEFAULT_LEASE_DURATION: LeaseDuration = LeaseDuration::DEFAULT;

/// What is left of a lease, counted from a moment no earlier than the caller's sending of this request.
fn holding(view: RoomView, secret: LeaseSecret) -> Holding {
    let valid_for = view.lease.as_ref().map_or(Duration::ZERO, |lease| lease.valid_for(view.log_time));
    Holding { view, secret, valid_for }
}

/// A renewal promises its own duration, even where an earlier one has promised more.
fn renewed(view: RoomView, secret: LeaseSecret) -> Holding {
    let mut holding = holding(view, secret);
    if let Some(lease) = &holding.view.lease {
        holding.valid_for = holding.valid_for.min(lease.lease_duration.as_duration());
    }
    holding
}

/// An answer that doesn't belong to its question, as only a peer of another version could give it.
fn unexpected(question: &str, outcome: &Outcome) -> ServiceError {
    tracing::error!(question, ?outcome, "the raft leader's answer does not belong to the question");
    ServiceError::OutcomeUnknown
}
