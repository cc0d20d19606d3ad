//! Serves a router on a listener, with limits on what a connection may cost before its first request is complete.
//!
//! Two kinds of request never reach a route, because hyper answers them itself and closes the connection. Bytes that
//! are not HTTP get 400, and a head over the limit gets 431. Both answers have no body and no request id.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum_server::{Handle, Server};

use super::connections::{ConnectionLimits, LimitedListener, RemoteAddress};
use super::once_per_minute::OncePerMinute;

/// How long a client may take to send the head of a request. A slower client would keep a connection without using it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest head of a request, in bytes. Each of thousands of connections can take that much memory while its head
/// arrives. The headers that a node reads have a few hundred bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// How long a client may leave sent bytes unread, in milliseconds. Only this ends a watch stream whose client no longer
/// reads: the node notices a lost client when it writes the next event, and that event waits behind the unread bytes.
#[cfg(target_os = "linux")]
const UNREAD_TIMEOUT_MS: u32 = 15_000;

/// A listener that serves a router until it is stopped.
pub struct Serving {
    handle: Handle<RemoteAddress>,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Serving {
    /// Serves a router on a bound listener, within the limits for connections.
    ///
    /// # Errors
    /// If the socket can't be set up, or can't be handed to the runtime.
    pub fn start(listener: TcpListener, limits: ConnectionLimits, router: Router) -> std::io::Result<Self> {
        // Accepted connections inherit this setting from the listener.
        #[cfg(target_os = "linux")]
        rustix::net::sockopt::set_tcp_user_timeout(&listener, UNREAD_TIMEOUT_MS)?;
        listener.set_nonblocking(true)?;
        let listener = LimitedListener::new(tokio::net::TcpListener::from_std(listener)?, limits);
        let handle = Handle::new();
        let failing = OncePerMinute::default();
        let mut server: Server<RemoteAddress> = Server::from_listener(listener)
            .handle(handle.clone())
            // After a failure, the server waits a moment and goes on by itself.
            .accept_error_handler(move |_, error| {
                if failing.is_due() {
                    tracing::warn!(%error, "a connection was not accepted; the node tries again");
                }
            })
            // HTTP/1 only: until the server knows which version a client speaks, none of its timeouts run. A silent
            // connection, or one that only begins to speak HTTP/2, would stay open forever.
            .http1_only();
        server.http_builder().http1().header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { server.serve(service).await });
        Ok(Self { handle, task })
    }

    /// Accepts no more connections, lets requests finish for `grace`, and returns when all connections are closed.
    pub async fn stop(self, grace: Duration) {
        self.handle.graceful_shutdown(Some(grace));
        if let Ok(Err(error)) = self.task.await {
            tracing::warn!(%error, "a listener ended with an error");
        }
    }
}
