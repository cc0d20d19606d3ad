//! Accepts connections, as many as there is room for.
//!
//! Each connection takes an open file, and the storage needs some too: without a limit here, whoever opens enough
//! connections has the next write to the disk fail, and with it the node.
//!
//! - When all places are taken, no more are accepted. The kernel keeps the next ones waiting in the listener's
//!   backlog, so that a short rush is late and nothing else; once the backlog is full as well, connecting times out,
//!   and a load balancer or a client knows that it has asked for nothing and may go elsewhere. To accept and close
//!   would leave it with a request that was sent and not answered.
//! - Who has its share of them already is closed at once, without a word: it must not wait in front of others. A
//!   trusted proxy has no share, since it is many clients.
//!
//! A place doesn't stay taken for nothing: see the time limits in `serve`.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum_server::{AddrListener, Address};
use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::client_key::ClientKey;
use super::once_per_minute::OncePerMinute;
use super::shares::{Share, Shares};

/// How many connections a listener may have.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// Open at a time.
    pub max: usize,
    /// Of these, from one address.
    pub per_address_max: usize,
    /// Those that may have all of them.
    pub trusted_proxies: Vec<IpNet>,
}

/// A listener that keeps to limits.
pub struct LimitedListener {
    listener: TcpListener,
    limits: ConnectionLimits,
    places: Arc<Semaphore>,
    shares: Arc<Shares>,
    full: OncePerMinute,
    greedy: OncePerMinute,
}

impl LimitedListener {
    /// A listener without connections yet.
    pub fn new(listener: TcpListener, limits: ConnectionLimits) -> Self {
        let places = Arc::new(Semaphore::new(limits.max.min(Semaphore::MAX_PERMITS)));
        let shares = Shares::new(limits.per_address_max);
        Self { listener, limits, places, shares, full: OncePerMinute::default(), greedy: OncePerMinute::default() }
    }

    async fn place(&self) -> OwnedSemaphorePermit {
        if self.places.available_permits() == 0 && self.full.is_due() {
            let (max, listener) = (self.limits.max, self.listener.local_addr().ok());
            tracing::warn!(max, ?listener, "all connections are taken; new ones wait until one ends");
        }
        self.places.clone().acquire_owned().await.expect("the places are never closed")
    }

    /// What is counted for who calls from this address; nothing for a trusted proxy.
    fn share(&self, peer: SocketAddr) -> Result<Option<Share>, NoShareLeft> {
        let address = peer.ip().to_canonical();
        if self.limits.trusted_proxies.iter().any(|network| network.contains(&address)) {
            return Ok(None);
        }
        let share = self.shares.take(ClientKey::of(address));
        if share.is_none() && self.greedy.is_due() {
            let max = self.limits.per_address_max;
            tracing::warn!(%address, max, "an address has its share of the connections; more of its own are closed");
        }
        share.map(Some).ok_or(NoShareLeft)
    }
}

/// This address has as many connections as it may.
struct NoShareLeft;

impl AddrListener<Connection, PeerAddress> for LimitedListener {
    async fn bind_to(_: PeerAddress) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a listener is bound before it gets its limits"))
    }

    async fn accept_stream(&self) -> io::Result<(Connection, PeerAddress)> {
        let place = self.place().await;
        loop {
            let (stream, peer) = self.listener.accept().await?;
            if let Ok(share) = self.share(peer) {
                // One that is gone already is noticed at its first read.
                let _ = stream.set_nodelay(true);
                return Ok((Connection { stream, _place: place, _share: share }, PeerAddress(peer)));
            }
        }
    }

    fn get_local_addr(&self) -> io::Result<PeerAddress> {
        self.listener.local_addr().map(PeerAddress)
    }
}

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(SocketAddr);

impl Address for PeerAddress {
    type Stream = Connection;
    type Listener = LimitedListener;
}

impl Connected<PeerAddress> for SocketAddr {
    fn connect_info(PeerAddress(address): PeerAddress) -> Self {
        address
    }
}

/// A connection, and its place. The file is closed before the place is given back.
pub struct Connection {
    stream: TcpStream,
    _share: Option<Share>,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context, into: &mut ReadBuf) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        pieces: &[IoSlice],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;
