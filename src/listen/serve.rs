//! Listens, with limits on what a connection may cost before its first request is complete.
//!
//! What isn't HTTP never gets as far as a route: hyper answers it with 400, and a head beyond the limits with 431, both
//! without a body and without a request id, and closes the connection.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum_server::{Handle, Server};

use super::connections::{ConnectionLimits, LimitedListener, PeerAddress};
use super::once_per_minute::OncePerMinute;

/// How long a client may take to send the head of a request. Slower ones hold a connection open for nothing.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that the head of a request may have. Each connection can keep that much memory for as long as its head may
/// take, and there are thousands of them; the headers that anybody here reads are a few hundred bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// How long a client may take none of what it is sent. A watch stream that nobody reads can't be ended otherwise:
/// its next event, where its end would be noticed, waits behind what the connection can't get rid of.
#[cfg(target_os = "linux")]
const UNREAD_TIMEOUT_MS: u32 = 15_000;

/// A listener that is being served.
pub struct Serving {
    handle: Handle<PeerAddress>,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Serving {
    /// Serves a router on a listener that is bound already, to as many connections as it may have.
    ///
    /// # Errors
    /// If the listener can't be handed to the runtime.
    pub fn start(listener: TcpListener, limits: ConnectionLimits, router: Router) -> std::io::Result<Self> {
        // Accepted connections have it from their listener.
        #[cfg(target_os = "linux")]
        rustix::net::sockopt::set_tcp_user_timeout(&listener, UNREAD_TIMEOUT_MS)?;
        listener.set_nonblocking(true)?;
        let listener = LimitedListener::new(tokio::net::TcpListener::from_std(listener)?, limits);
        let handle = Handle::new();
        let failing = OncePerMinute::default();
        let mut server: Server<PeerAddress> = Server::from_listener(listener)
            .handle(handle.clone())
            // The server itself waits a moment after a failure, and goes on.
            .accept_error_handler(move |_, error| {
                if failing.is_due() {
                    tracing::warn!(%error, "a connection was not accepted; trying on");
                }
            })
            // HTTP/1 only: while a server waits to see which HTTP a client speaks, none of its timeouts run yet, so
            // that a connection which says nothing, or has begun to speak HTTP/2, stays open for ever.
            .http1_only();
        server.http_builder().http1().header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { server.serve(service).await });
        Ok(Self { handle, task })
    }

    /// Takes no more connections, lets requests finish for `grace`, and returns when all is closed.
    pub async fn stop(self, grace: Duration) {
        self.handle.graceful_shutdown(Some(grace));
        if let Ok(Err(error)) = self.task.await {
            tracing::warn!(%error, "a listener did not end in good order");
        }
    }
}
