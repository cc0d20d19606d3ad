//! Bytes to a peer and back, by a deadline.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;

/// One request to a peer.
#[derive(Debug)]
pub struct Parcel {
    /// `host:port` of its peer listener.
    pub address: String,
    /// Where on it.
    pub path: String,
    /// What is said beside the body.
    pub headers: HeaderMap,
    /// The content, of any length.
    pub body: reqwest::Body,
    /// How long all of it may take.
    pub timeout: Duration,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// HTTP status.
    pub status: u16,
    /// All of its body.
    pub body: Vec<u8>,
}

/// Why there is no whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CarryFailure {
    /// No connection: the request was certainly not delivered.
    Unreachable(String),
    /// Sent, at least in part.
    NoAnswer(String),
}

/// Carries requests to peers. A simulation has one for its own network.
pub trait Carrier: Send + Sync + 'static {
    /// Posts one, and waits for the answer.
    fn post(&self, parcel: Parcel) -> BoxFuture<'static, Result<Delivered, CarryFailure>>;
}

/// Carries by HTTP; connections are kept and shared.
pub struct HttpCarrier {
    http: reqwest::Client,
}

impl HttpCarrier {
    /// Outlasts a lost packet or two, and is short against a raft election.
    const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
    /// Closes a connection before a firewall forgets it silently.
    const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

    /// A carrier without connections yet.
    ///
    /// # Errors
    /// If the machine lacks what an HTTP client needs.
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
    fn post(&self, parcel: Parcel) -> BoxFuture<'static, Result<Delivered, CarryFailure>> {
        let Parcel { address, path, headers, body, timeout } = parcel;
        let request = self.http.post(format!("http://{address}{path}")).headers(headers).body(body).timeout(timeout);
        async move {
            let response = request.send().await?;
            let status = response.status().as_u16();
            Ok(Delivered { status, body: response.bytes().await?.into() })
        }
        .map(|answered| answered.map_err(|error| failure(&error)))
        .boxed()
    }
}

fn failure(error: &reqwest::Error) -> CarryFailure {
    // The innermost cause says what happened; the outer ones only that something did.
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let reason = cause.to_string();
    if error.is_connect() { CarryFailure::Unreachable(reason) } else { CarryFailure::NoAnswer(reason) }
}
