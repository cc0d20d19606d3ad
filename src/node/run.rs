//! Runs a node from its start to its stop, as a process on a real machine.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::assemble::Node;
use super::error::NodeError;
use super::open_files::OpenFiles;
use super::outside::Outside;
use crate::config::Config;
use crate::consensus::Consensus;
use crate::listen::{ConnectionLimits, Serving};

/// When this node stops, another node has this long to become raft leader.
const HAND_OVER_TIME: Duration = Duration::from_secs(2);
/// When this node stops, requests in flight have this long to finish. Together with the hand-over that is less
/// than the 10 s after which Docker kills a container.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// If the raft core or the disk has failed, requests in flight have only this long. This node can't decide them any
/// more, so their clients should soon try another node.
const FAILED_GRACE: Duration = Duration::from_millis(500);

/// Runs a node until SIGTERM or SIGINT. Calls `when_ready` once, as soon as the node can serve.
///
/// # Errors
/// If the node can't start, or if its raft core or its disk fails later.
pub async fn run(config: Config, when_ready: impl FnOnce(SocketAddr) + Send + 'static) -> Result<(), NodeError> {
    let open_files = OpenFiles::claim(&config)?;
    // Both ports come first, so that a node that can't listen changes nothing on the disk.
    let (client_listener, listen) = bind("--listen", config.listen)?;
    let peer_listener = match config.peers.is_empty() {
        true => None,
        false => Some(bind("--peer-listen", config.peer_listen)?),
    };
    let peer_listen = peer_listener.as_ref().map_or(config.peer_listen, |(_, bound)| *bound);
    let mut stop = StopSignals::new()?;

    let node = Node::start(&config, Outside::real()?, listen, peer_listen).await?;
    let limits = |max| ConnectionLimits { max, per_address_max: max / 2, trusted_proxies: Vec::new() };
    let peer_serving = match peer_listener {
        Some((listener, _)) => {
            tracing::info!(%peer_listen, "listening for peers");
            Some(Serving::start(listener, limits(open_files.peer_connections), node.peer_router())?)
        }
        None => None,
    };
    let client_limits = limits(open_files.client_connections);
    let client_limits = ConnectionLimits { trusted_proxies: config.http.trusted_proxies.clone(), ..client_limits };
    let client_serving = Serving::start(client_listener, client_limits, node.client_router(&config))?;
    tracing::info!(%listen, name = %config.name, data_dir = %config.data_dir.display(), "listening");

    let consensus = node.consensus().clone();
    let announce = tokio::spawn(announce(consensus.clone(), move || when_ready(listen)));
    let result = tokio::select! {
        () = stop.received() => Ok(()),
        error = consensus.stopped() => Err(error.into()),
        error = node.founding_failed() => Err(error.into()),
    };
    announce.abort();

    tracing::info!("stopping: no longer ready");
    consensus.hold_back("this node is stopping");
    if result.is_ok() {
        consensus.hand_over(Instant::now() + HAND_OVER_TIME).await;
    }
    let grace = if result.is_ok() { STOP_GRACE } else { FAILED_GRACE };
    let peers_closed = async {
        if let Some(serving) = peer_serving {
            serving.stop(grace).await;
        }
    };
    let all_closed = async { tokio::join!(client_serving.stop(grace), peers_closed) };
    tokio::select! {
        _ = all_closed => {}
        () = stop.received() => tracing::warn!("told to stop again: requests in flight are cut off"),
    }
    consensus.shut_down().await;
    tracing::info!("stopped");
    result
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
