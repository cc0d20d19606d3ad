//! Bytes to a peer and back, within a timeout.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;

use super::error::PeerError;

/// One request to a peer.
#[derive(Debug)]
pub struct Parcel {
    /// `host:port` of its peer listener.
    pub address: String,
    /// Path of the URL.
    pub path: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, of any length.
    pub body: reqwest::Body,
    /// Timeout for request and answer together.
    pub timeout: Duration,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Carries requests to peers. The simulation has another implementation, for its own network.
pub trait Carrier: Send + Sync + 'static {
    /// Posts a request and waits for the answer.
    ///
    /// # Errors
    /// `Unreachable` if there was no connection, `NoAnswer` if there was one.
    fn post(&self, parcel: Parcel) -> BoxFuture<'static, Result<Delivered, PeerError>>;
}

/// Carries requests over HTTP. Connections are kept and shared.
pub struct HttpCarrier {
    http: reqwest::Client,
}

impl HttpCarrier {
    /// Enough time for one or two lost packets, and short compared with a raft election.
    const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
    /// An idle connection is closed before a firewall would forget it silently.
    const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

    /// A carrier without connections yet.
    ///
    /// # Errors
    /// If the HTTP client cannot be set up on this machine.
    pub fn new() -> std::io::Result<Self> {
        let http = reqwest::Client::builder()
            .connect_timeout(Self::CONNECT_TIMEOUT)
            .pool_idle_timeout(Self::IDLE_TIMEOUT)
            .tcp_nodelay(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build();
        Ok(Self { http: http.map_err(std::io::Error::other)? })
    }
}

impl Carrier for HttpCarrier {
    fn post(&self, parcel: Parcel) -> BoxFuture<'static, Result<Delivered, PeerError>> {
        let Parcel { address, path, headers, body, timeout } = parcel;
        let request = self.http.post(format!("http://{address}{path}")).headers(headers).body(body).timeout(timeout);
        async move {
            let response = request.send().await?;
            let status = response.status().as_u16();
            Ok(Delivered { status, body: response.bytes().await?.into() })
        }
        .map(|answered| answered.map_err(|error| failure(address, &error)))
        .boxed()
    }
}

fn failure(address: String, error: &reqwest::Error) -> PeerError {
    // The innermost cause names the failure. The outer ones say only that the request failed.
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let reason = cause.to_string();
    if error.is_connect() {
        PeerError::Unreachable { address, reason }
    } else {
        PeerError::NoAnswer { address, reason }
    }
}
