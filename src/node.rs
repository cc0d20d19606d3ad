//! One node: puts the parts together, runs them, and stops them in order.

mod open_files;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use self::open_files::OpenFiles;
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::consensus::{Consensus, ConsensusError, ConsensusSettings, Founding, Parts};
use crate::http::{HttpSettings, build_router};
use crate::listen::{ConnectionLimits, Serving};
use crate::peer::{Carrier, ClusterSecret, HttpCarrier, PeerError, Transport};
use crate::peer_listener::{PeerContext, build_peer_router};
use crate::raft_types::Node as NodeInfo;
use crate::random::{Random, SystemRandom};
use crate::service::{RoomService, ServiceSettings};
use crate::storage::{self, Disk, Durability, StorageConfig, StorageError};

/// How long another node may take to become raft leader when this one stops.
const HAND_OVER_TIME: Duration = Duration::from_secs(2);
/// How long requests may take to finish when this node stops. With the hand-over it stays under 10 s.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The same, for a node whose raft core or disk has failed. What is open can't be decided here any more: its
/// clients do better at another node, and this one is started again the sooner.
const FAILED_GRACE: Duration = Duration::from_millis(500);

/// Why a node can't run, or can't any longer.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Another process, or another node, listens there.
    #[error("{flag} {address}: {source}; is another node running? choose another address with {flag}")]
    Listen {
        /// The flag to change.
        flag: &'static str,
        /// What was to be bound.
        address: SocketAddr,
        /// Why it can't.
        source: std::io::Error,
    },
    /// The data directory can't be used.
    #[error("--data-dir: {0}")]
    Storage(#[from] StorageError),
    /// The peers are set up in a way that can't be right.
    #[error("{0}")]
    Setup(String),
    /// Something broke that a restart may mend.
    #[error("{0}")]
    Stopped(String),
}

impl NodeError {
    /// Whether a restart with the same settings and data would fail again.
    pub fn needs_an_operator(&self) -> bool {
        !matches!(self, NodeError::Stopped(_))
    }
}

impl From<ConsensusError> for NodeError {
    fn from(error: ConsensusError) -> Self {
        match error {
            ConsensusError::Setup(reason) => NodeError::Setup(reason),
            ConsensusError::Storage(error) => NodeError::Storage(error),
            ConsensusError::Stopped(_) => NodeError::Stopped(error.to_string()),
        }
    }
}

impl From<PeerError> for NodeError {
    fn from(error: PeerError) -> Self {
        NodeError::Stopped(error.to_string())
    }
}

impl From<std::io::Error> for NodeError {
    fn from(error: std::io::Error) -> Self {
        NodeError::Stopped(error.to_string())
    }
}

/// Runs a node until it is told to stop. `when_ready` is called once, when it can serve.
///
/// # Errors
/// If it can't start, or its raft core or disk fails later.
pub async fn run(config: Config, when_ready: impl FnOnce(SocketAddr) + Send + 'static) -> Result<(), NodeError> {
    let open_files = OpenFiles::claim(&config, http_settings(&config).connections_of_use())?;
    // Both ports first: nothing on the disk is touched by a node that can't listen.
    let (client_listener, listen) = bind("--listen", config.listen)?;
    let (peer_listener, peer_listen) = bind("--peer-listen", config.peer_listen)?;
    let mut stop = StopSignals::new()?;

    let node = Node::start(&config, Outside::real()?, listen, peer_listen).await?;
    let limits = |max| ConnectionLimits { max, per_address_max: max / 2, trusted_proxies: Vec::new() };
    let peer_limits = limits(open_files.peer_connections);
    let peer_serving = Serving::start(peer_listener, peer_limits, node.peer_router())?;
    let client_limits = limits(open_files.client_connections);
    let client_limits = ConnectionLimits { trusted_proxies: config.trusted_proxies.clone(), ..client_limits };
    let client_serving = Serving::start(client_listener, client_limits, node.client_router(&config))?;
    tracing::info!(%listen, %peer_listen, name = %config.name, data_dir = %config.data_dir.display(), "listening");

    let consensus = node.consensus.clone();
    let announce = tokio::spawn(announce(consensus.clone(), move || when_ready(listen)));
    let result = tokio::select! {
        () = stop.received() => Ok(()),
        error = consensus.stopped() => Err(error.into()),
        error = node.founding_failed() => Err(error.into()),
    };
    announce.abort();

    tracing::info!("stopping: no longer ready");
    consensus.set_not_ready(Some("this node is stopping".into()));
    if result.is_ok() {
        consensus.hand_over(Instant::now() + HAND_OVER_TIME).await;
    }
    let grace = if result.is_ok() { STOP_GRACE } else { FAILED_GRACE };
    let all_closed = async { tokio::join!(client_serving.stop(grace), peer_serving.stop(grace)) };
    tokio::select! {
        _ = all_closed => {}
        () = stop.received() => tracing::warn!("told to stop again: requests under way are cut off"),
    }
    consensus.shut_down().await;
    tracing::info!("stopped");
    result
}

/// What a node has to do with beyond its own code. A simulation has its own of each.
pub struct Outside {
    /// Its time.
    pub clock: Arc<dyn Clock>,
    /// Where its secrets and ids come from.
    pub random: Arc<dyn Random>,
    /// How it reaches its peers.
    pub carrier: Arc<dyn Carrier>,
    /// What it stores on.
    pub disk: Arc<dyn Disk>,
}

impl Outside {
    /// This machine's.
    pub fn real() -> Result<Outside, NodeError> {
        Ok(Outside {
            clock: SystemClock::start()?,
            random: Arc::new(SystemRandom),
            carrier: Arc::new(HttpCarrier::new()?),
            disk: Arc::new(Durability::Fsync),
        })
    }
}

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

fn http_settings(config: &Config) -> HttpSettings {
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

fn bind(flag: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), NodeError> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        let local = listener.local_addr()?;
        Ok((listener, local))
    });
    bound.map_err(|source| NodeError::Listen { flag, address, source })
}

async fn announce(consensus: Consensus, when_ready: impl FnOnce()) {
    const LOOK_EVERY: Duration = Duration::from_millis(5);
    while consensus.readiness().is_err() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    when_ready();
}

/// SIGTERM and SIGINT.
struct StopSignals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
