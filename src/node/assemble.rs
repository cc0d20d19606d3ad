//! Puts the parts of a node together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;

use super::error::NodeError;
use super::outside::Outside;
use crate::config::Config;
use crate::consensus::{Consensus, ConsensusError, ConsensusSettings, Founding, Parts};
use crate::http::peers::{PeerContext, build_peer_router};
use crate::http::{HttpSettings, build_router};
use crate::peer::{ClusterSecret, Transport};
use crate::raft_types::Node as NodeInfo;
use crate::random::Random;
use crate::service::{RoomService, ServiceSettings};
use crate::storage::{self, StorageConfig};

/// A node that takes part, and whose routers are to be served.
pub struct Node {
    consensus: Consensus,
    service: RoomService,
    random: Arc<dyn Random>,
    founding: Arc<Founding>,
    secret: Option<ClusterSecret>,
}

impl Node {
    /// Opens what it has on the disk and takes part, as one that is reached at these addresses.
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
        let consensus = Consensus::start(parts, consensus_settings(config)).await?;
        if !consensus.has_log() {
            consensus.set_not_ready(Some("waiting for a cluster".into()));
        }
        let service = RoomService::new(consensus.clone(), transport.clone(), random.clone(), service_settings(config));
        let founding = Arc::new(Founding { peers, transport, random: random.clone() });
        Ok(Node { consensus, service, random, founding, secret })
    }

    /// How it stands.
    pub fn consensus(&self) -> &Consensus {
        &self.consensus
    }

    /// What is served to other nodes.
    pub fn peer_router(&self) -> Router {
        build_peer_router(PeerContext {
            consensus: self.consensus.clone(),
            service: self.service.clone(),
            secret: self.secret.clone(),
            expected_names: self.founding.peers.keys().cloned().collect(),
        })
    }

    /// What is served to clients.
    pub fn client_router(&self, config: &Config) -> Router {
        build_router(self.service.clone(), http_settings(config), self.random.clone())
    }

    /// Founds or joins a cluster, then waits for ever. Returns only with an error.
    pub async fn founding_failed(&self) -> ConsensusError {
        match self.founding.run(&self.consensus).await {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    }
}

fn consensus_settings(config: &Config) -> ConsensusSettings {
    ConsensusSettings {
        heartbeat: config.raft.heartbeat,
        raft_election_timeout: config.raft.raft_election_timeout,
        snapshot_every: config.raft.snapshot_every,
        log_entries_kept: config.raft.log_entries_kept,
    }
}

fn service_settings(config: &Config) -> ServiceSettings {
    ServiceSettings { live_leases_max: config.max_live_leases, ..ServiceSettings::default() }
}

pub fn http_settings(config: &Config) -> HttpSettings {
    HttpSettings {
        elections_enabled: config.elections_enabled,
        access_tokens: config.access_tokens.clone(),
        trusted_proxies: config.trusted_proxies.clone(),
        campaigns_per_minute: config.campaigns_per_minute,
        streams_per_client_max: config.max_watches_per_client,
        streams_max: config.max_watches,
        ..HttpSettings::default()
    }
}
