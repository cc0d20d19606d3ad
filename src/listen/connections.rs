//! Accepts connections within limits.
//!
//! Each connection takes an open file, and the storage needs open files too. Without a limit, a caller with enough
//! connections could make the next write to the disk fail, and the node stop.
//!
//! - When all places are taken, the node accepts no more connections. The next ones wait in the kernel's backlog, so a
//!   short rush is only late. When the backlog is full as well, connecting times out. The client then knows that
//!   nothing was sent, and can try another node. If the node accepted and closed, the client could have sent a request
//!   already.
//! - If an address has its share already, its next connection is closed at once. Otherwise it would wait in front of
//!   others. A trusted proxy has no such limit, because it stands for many clients.
//!
//! The timeouts in `serve` close idle connections, so that they don't keep their places.

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
    /// The most connections that may be open at a time.
    pub max: usize,
    /// The most of these that one address may have.
    pub per_address_max: usize,
    /// Networks of trusted proxies. The limit for one address does not apply to them.
    pub trusted_proxies: Vec<IpNet>,
}

/// A listener that accepts connections within its limits.
pub struct LimitedListener {
    listener: TcpListener,
    limits: ConnectionLimits,
    places: Arc<Semaphore>,
    shares: Arc<Shares>,
    full: OncePerMinute,
    greedy: OncePerMinute,
}

impl LimitedListener {
    /// A listener with all places free.
    pub fn new(listener: TcpListener, limits: ConnectionLimits) -> Self {
        let places = Arc::new(Semaphore::new(limits.max.min(Semaphore::MAX_PERMITS)));
        let shares = Shares::new(limits.per_address_max);
        Self { listener, limits, places, shares, full: OncePerMinute::default(), greedy: OncePerMinute::default() }
    }

    async fn place(&self) -> OwnedSemaphorePermit {
        if self.places.available_permits() == 0 && self.full.is_due() {
            let (max, listener) = (self.limits.max, self.listener.local_addr().ok());
            tracing::warn!(
                max,
                ?listener,
                "all connections are taken; new ones wait until one ends (a higher limit of open files allows more)"
            );
        }
        self.places.clone().acquire_owned().await.expect("the places are never closed")
    }

    /// Counts a connection for its address. A trusted proxy is not counted.
    fn share(&self, remote: SocketAddr) -> Result<Option<Share>, NoShareLeft> {
        let address = remote.ip().to_canonical();
        if self.limits.trusted_proxies.iter().any(|network| network.contains(&address)) {
            return Ok(None);
        }
        let share = self.shares.take(ClientKey::of(address));
        if share.is_none() && self.greedy.is_due() {
            let max = self.limits.per_address_max;
            tracing::warn!(%address, max, "an address has as many connections as it may have; more from it are closed");
        }
        share.map(Some).ok_or(NoShareLeft)
    }
}

/// The address has as many connections as one address may have.
struct NoShareLeft;

impl AddrListener<Connection, RemoteAddress> for LimitedListener {
    async fn bind_to(_: RemoteAddress) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this listener takes a socket that is already bound"))
    }

    async fn accept_stream(&self) -> io::Result<(Connection, RemoteAddress)> {
        let place = self.place().await;
        loop {
            let (stream, remote) = self.listener.accept().await?;
            if let Ok(share) = self.share(remote) {
                // If the caller has gone already, the first read will show it.
                let _ = stream.set_nodelay(true);
                return Ok((Connection { stream, _place: place, _share: share }, RemoteAddress(remote)));
            }
        }
    }

    fn get_local_addr(&self) -> io::Result<RemoteAddress> {
        self.listener.local_addr().map(RemoteAddress)
    }
}

/// The address that a connection comes from.
#[derive(Debug, Clone, Copy)]
pub struct RemoteAddress(SocketAddr);

impl Address for RemoteAddress {
    type Stream = Connection;
    type Listener = LimitedListener;
}

impl Connected<RemoteAddress> for SocketAddr {
    fn connect_info(RemoteAddress(address): RemoteAddress) -> Self {
        address
    }
}

/// A connection and its place. The socket closes before the place becomes free, because fields drop in this order.
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
