//! Puts the parts of a node together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;

use super::error::NodeError;
use super::outside::Outside;
use crate::config::Config;
use crate::consensus::{self, Consensus, ConsensusError, Founding, Parts};
use crate::http::build_router;
use crate::peer::{ClusterSecret, Transport};
use crate::peer_listener::{PeerContext, build_peer_router};
use crate::raft_types::Node as NodeInfo;
use crate::random::Random;
use crate::service::RoomService;
use crate::storage::{self, StorageConfig};

/// A running node. The caller serves its two routers.
pub struct Node {
    consensus: Consensus,
    service: RoomService,
    random: Arc<dyn Random>,
    founding: Arc<Founding>,
    secret: Option<ClusterSecret>,
}

impl Node {
    /// Opens the data directory and takes part in the cluster. Clients reach this node at `listen`, peers at
    /// `peer_listen`, unless the settings name other addresses.
    pub async fn start(
        config: &Config,
        outside: Outside,
        listen: SocketAddr,
        peer_listen: SocketAddr,
    ) -> Result<Node, NodeError> {
        let Outside { clock, random, carrier, disk } = outside;
        let secret = config.cluster_secret.clone().map(ClusterSecret::new);
        let transport = Transport::new(carrier, secret.as_ref())?;
        let peers = if config.peers.is_empty() {
            BTreeMap::from([(config.name.clone(), peer_listen.to_string())])
        } else {
            config.peers.iter().map(|peer| (peer.name.clone(), peer.address.clone())).collect()
        };
        let node = NodeInfo {
            name: config.name.clone(),
            peer_address: config.peer_address(peer_listen),
            client_url: config.client_url(listen),
        };
        let blocking = disk.blocking();
        let storage_config = StorageConfig { disk, ..StorageConfig::new(&config.data_dir, &config.name) };
        let storage_random = random.clone();
        let storage = blocking.run(move || Ok(storage::open(storage_config, &*storage_random))).await??;
        let parts = Parts { node, storage, transport: transport.clone(), clock };
        let consensus = consensus::start(parts, config.consensus.clone()).await?;
        if config.peers.is_empty() && consensus.has_log() {
            check_is_alone(&consensus).await?;
        }
        if !consensus.has_log() {
            consensus.hold_back("waiting for a cluster");
        }
        let service = RoomService::new(consensus.clone(), transport.clone(), random.clone(), config.service);
        let founding = Arc::new(Founding { peers, transport, random: random.clone() });
        Ok(Node { consensus, service, random, founding, secret })
    }

    /// This node's part in the cluster.
    pub fn consensus(&self) -> &Consensus {
        &self.consensus
    }

    /// The routes for other nodes.
    pub fn peer_router(&self) -> Router {
        build_peer_router(PeerContext {
            consensus: self.consensus.clone(),
            decider: self.service.decider().clone(),
            secret: self.secret.clone(),
            expected_names: self.founding.peers.keys().cloned().collect(),
        })
    }

    /// The routes for clients.
    pub fn client_router(&self, config: &Config) -> Router {
        build_router(self.service.clone(), config.http.clone(), self.random.clone())
    }

    /// Founds or joins a cluster, then waits forever. Returns only if that failed, with the reason.
    pub async fn founding_failed(&self) -> ConsensusError {
        match self.founding.run(&self.consensus).await {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    }
}

/// Checks that a node without a peer listener is the only member of its cluster.
async fn check_is_alone(consensus: &Consensus) -> Result<(), NodeError> {
    const LOOK_EVERY: Duration = Duration::from_millis(5);
    /// The raft core needs some milliseconds to read the members from its log.
    const LOOKS_MAX: u32 = 400;
    for _ in 0..LOOKS_MAX {
        match consensus.status().members.len() {
            0 => tokio::time::sleep(LOOK_EVERY).await,
            1 => return Ok(()),
            members => {
                return Err(NodeError::Setup(format!(
                    "--peers: this node belongs to a cluster of {members} nodes, but --peers is not set, so no other \
                     node could reach it; set --peers and --cluster-secret-file as before"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
