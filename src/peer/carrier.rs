//! Bytes to a peer and back, within a timeout.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;

use super::error::PeerError;
use crate::codec;

/// The largest answer that is read: one frame.
pub const ANSWER_BYTES_MAX: usize = codec::PAYLOAD_BYTES_MAX + codec::OVERHEAD_BYTES;

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
    /// `Unreachable` if there was no connection, `NoAnswer` if there was one, `Malformed` if the answer is larger than
    /// [`ANSWER_BYTES_MAX`].
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
            let response = request.send().await.map_err(|error| failure(&address, &error))?;
            let status = response.status().as_u16();
            match read_body(response).await.map_err(|error| failure(&address, &error))? {
                Some(body) => Ok(Delivered { status, body }),
                None => {
                    let reason = format!("its answer is larger than {ANSWER_BYTES_MAX} bytes");
                    Err(PeerError::Malformed { address, reason })
                }
            }
        }
        .boxed()
    }
}

/// The whole body, or `None` if it is larger than [`ANSWER_BYTES_MAX`]. Then the rest is not read, and the connection is
/// closed.
async fn read_body(mut response: reqwest::Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    if response.content_length().is_some_and(|announced| announced > ANSWER_BYTES_MAX as u64) {
        return Ok(None);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

fn failure(address: &str, error: &reqwest::Error) -> PeerError {
    // The innermost cause names the failure. The outer ones say only that the request failed.
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let (address, reason) = (address.to_owned(), cause.to_string());
    if error.is_connect() {
        PeerError::Unreachable { address, reason }
    } else {
        PeerError::NoAnswer { address, reason }
    }
}
