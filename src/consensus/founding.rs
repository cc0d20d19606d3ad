//! How a cluster begins: only when every peer answers, all of them are empty, and all expect the same names.
//!
//! Then the node with the lowest name makes the others members. Its wall clock must be set, because the first fencing
//! tokens follow from it. It never happens on a timeout. A node that cannot reach
//! the others does not know whether they serve already, and two clusters under one name are worse than none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openraft::errors::{InitializeError, RaftError};
use tokio::time::Instant;
use uuid::Uuid;

use super::error::ConsensusError;
use super::handle::Consensus;
use crate::clock::WALL_TIME_MIN;
use crate::peer::{PeerIdentity, Transport, path};
use crate::raft_types::{Node, NodeId};
use crate::random::{Random, random_bytes};

/// The time between two rounds of requests to the peers.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// A waiting node repeats the reason as a trace event this often.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// The timeout for one peer's answer about itself.
const IDENTITY_TIMEOUT: Duration = Duration::from_secs(1);

/// The nodes that the operator named, and the way to ask them.
pub struct Founding {
    /// Names and `host:port` of the peer listeners, this node's included.
    pub peers: BTreeMap<String, String>,
    /// The way to reach them.
    pub transport: Transport,
    /// The source of the cluster's id.
    pub random: Arc<dyn Random>,
}

impl Founding {
    /// Returns once this node is a member of a cluster.
    pub async fn run(&self, consensus: &Consensus) -> Result<(), ConsensusError> {
        let mut said_at: Option<Instant> = None;
        let mut last_reason = String::new();
        while !consensus.has_log() {
            match self.look(consensus).await? {
                Ok(members) => self.found(consensus, members).await?,
                Err(reason) => {
                    if reason != last_reason || said_at.is_none_or(|at| at.elapsed() >= SAY_EVERY) {
                        tracing::info!(%reason, "waiting to found or join a cluster");
                        said_at = Some(Instant::now());
                    }
                    consensus.hold_back(reason.clone());
                    last_reason = reason;
                    tokio::time::sleep(ASK_EVERY).await;
                }
            }
        }
        consensus.serve();
        Ok(())
    }

    /// Asks all peers. Returns the members for a new cluster, or the reason why it cannot be founded yet.
    async fn look(&self, consensus: &Consensus) -> Result<Result<BTreeMap<NodeId, Node>, String>, ConsensusError> {
        let local = consensus.local();
        let own_name = &local.node().name;
        let mut members = BTreeMap::from([(local.node_id(), local.node().clone())]);
        let mut missing = Vec::new();
        let others = self.peers.iter().filter(|(name, _)| *name != own_name);
        let answers = futures::future::join_all(others.map(|(name, address)| async move {
            let sender = local.sender();
            let answer = self.transport.ask_identity(address, path::IDENTITY, sender, IDENTITY_TIMEOUT).await;
            (name, address, answer)
        }))
        .await;
        for (name, address, answer) in answers {
            let identity: PeerIdentity = match answer {
                Ok(identity) => identity,
                Err(error) => {
                    missing.push(format!("{name}: {error}"));
                    continue;
                }
            };
            match self.objection(&identity, name, local.cluster_id()) {
                Some(objection) => missing.push(format!("{name}: {objection}")),
                None => {
                    let node = Node {
                        name: name.clone(),
                        peer_address: address.clone(),
                        client_url: identity.client_url.clone(),
                    };
                    if members.insert(identity.node_id, node).is_some() {
                        let reason = format!("--peers: {name} at {address} is the same node as another entry");
                        return Err(ConsensusError::Setup(reason));
                    }
                }
            }
        }
        if !missing.is_empty() {
            let answered = members.len();
            return Ok(Err(format!("{answered} of {} peers are ready; {}", self.peers.len(), missing.join("; "))));
        }
        if self.peers.keys().next().is_some_and(|lowest| lowest != own_name) {
            return Ok(Err("all peers are ready; the one with the lowest name founds the cluster".into()));
        }
        if consensus.wall_time() < WALL_TIME_MIN {
            return Ok(Err("this machine's clock is not set: set its date and time, or start its NTP service".into()));
        }
        Ok(Ok(members))
    }

    fn objection(&self, identity: &PeerIdentity, name: &str, own_cluster: Option<Uuid>) -> Option<String> {
        let expected: Vec<&String> = self.peers.keys().collect();
        if identity.name != name {
            return Some(format!("calls itself {}", identity.name));
        }
        if !identity.is_empty {
            return Some(
                "belongs to a cluster already, but this node has no data: an operator must restore its place there"
                    .into(),
            );
        }
        if identity.cluster_id.is_some() && identity.cluster_id != own_cluster {
            return Some("is about to join another cluster".into());
        }
        (identity.expected_names.iter().collect::<Vec<_>>() != expected)
            .then(|| format!("expects {:?}, this node {expected:?}", identity.expected_names))
    }

    async fn found(&self, consensus: &Consensus, members: BTreeMap<NodeId, Node>) -> Result<(), ConsensusError> {
        let local = consensus.local();
        let cluster_id = uuid::Builder::from_random_bytes(random_bytes(&*self.random)).into_uuid();
        // The id first, because a node with a log must belong to a cluster. A crash in between leaves an id without a
        // log. The next attempt uses it.
        local.adopt_cluster(cluster_id)?;
        match consensus.raft.initialize(members).await {
            Ok(()) => {
                let cluster_id = local.cluster_id().map(|id| id.to_string());
                tracing::info!(cluster_id, "founded a cluster");
            }
            // Another node was first, with the same members.
            Err(RaftError::APIError(InitializeError::NotAllowed(_))) => {}
            Err(error) => return Err(ConsensusError::stopped(error)),
        }
        Ok(())
    }
}
