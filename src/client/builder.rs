//! The settings of a client, and their checks.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use super::caller::Caller;
use super::error::ClientError;
use super::handle::Client;
use super::holder_clock::{HolderClock, SystemHolderClock};

/// The default deadline of a request. It leaves time for several tries at each node while the cluster replaces a
/// failed one.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// A node that takes longer to accept a connection is treated as unreachable.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

const ACCESS_TOKEN_ADVICE: &str =
    "the access token must be visible ASCII without spaces; remove any space or line break from it";

/// The settings of a [`Client`]. [`Client::builder`] makes one, [`build`](ClientBuilder::build) uses it.
#[must_use = "a builder does nothing until the client is built"]
pub struct ClientBuilder {
    urls: Vec<String>,
    request_deadline: Duration,
    access_token: Option<SecretString>,
    allow_insecure_http: bool,
    clock: Arc<dyn HolderClock>,
}

impl Client {
    /// The settings of a new client. Without changes, it calls the node at [`ClientBuilder::DEFAULT_URL`].
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            urls: Vec::new(),
            request_deadline: REQUEST_DEADLINE,
            access_token: None,
            allow_insecure_http: false,
            clock: Arc::new(SystemHolderClock),
        }
    }
}

impl ClientBuilder {
    /// The node that is called if no URL is set: a node on this machine with default settings.
    pub const DEFAULT_URL: &str = "http://127.0.0.1:7400";

    /// The nodes of the cluster, each as `http://host:port`. Default: [`ClientBuilder::DEFAULT_URL`].
    ///
    /// Name all of them: if one fails, the client calls the next.
    pub fn urls<U: Into<String>>(mut self, urls: impl IntoIterator<Item = U>) -> Self {
        self.urls = urls.into_iter().map(Into::into).collect();
        self
    }

    /// How long one request may take, including all its tries at all nodes. Default: 10 seconds.
    ///
    /// A campaign that waits for the room adds the time that it waits. Renewals are tried until authority ends.
    pub fn request_deadline(mut self, duration: Duration) -> Self {
        self.request_deadline = duration;
        self
    }

    /// The access token that the cluster demands from its clients. Default: none.
    ///
    /// It is sent as `Authorization: Bearer`.
    pub fn access_token(mut self, token: SecretString) -> Self {
        self.access_token = Some(token);
        self
    }

    /// Allows tokens to travel unencrypted to other machines. Default: false.
    ///
    /// Anybody who can read the traffic can then copy a leader token, and renew or resign with it. Allow this only in a
    /// network that you trust. A node on this machine needs no permission.
    pub fn allow_insecure_http(mut self, allow: bool) -> Self {
        self.allow_insecure_http = allow;
        self
    }

    /// The clock that leases are counted on. Default: [`SystemHolderClock`]. A test can set its own.
    pub fn clock(mut self, clock: Arc<dyn HolderClock>) -> Self {
        self.clock = clock;
        self
    }

    /// The client. Nothing is sent yet.
    ///
    /// # Errors
    /// - [`ClientError::Invalid`] if a URL is not that of a node, if the access token is not visible ASCII, or if
    ///   HTTP cannot be set up on this machine.
    /// - [`ClientError::Cleartext`] if the access token would travel unencrypted to another machine.
    pub fn build(self) -> Result<Client, ClientError> {
        let urls = if self.urls.is_empty() { vec![Self::DEFAULT_URL.to_owned()] } else { self.urls };
        let parsed = urls.iter().map(|url| parse_url(url)).collect::<Result<Vec<_>, _>>()?;
        let exposed = parsed.iter().find(|url| !self.allow_insecure_http && !is_loopback(url));
        let exposed_host = exposed.map(|url| url.host_str().unwrap_or_default().to_owned());
        if let Some(token) = &self.access_token {
            if !token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(ClientError::Invalid(ACCESS_TOKEN_ADVICE.into()));
            }
            if let Some(host) = exposed_host {
                return Err(ClientError::Cleartext { host });
            }
        }
        let agent = concat!("quorate/", env!("CARGO_PKG_VERSION"));
        // A proxy that is set in the environment is meant for the internet, not for the nodes. A redirect could carry a
        // token to a stranger.
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_DEADLINE)
            .user_agent(agent)
            .build()
            .map_err(|error| ClientError::Invalid(error.to_string()))?;
        let urls = urls.iter().map(|url| url.trim_end_matches('/').to_owned()).collect();
        let ClientBuilder { request_deadline, access_token, clock, .. } = self;
        let current = AtomicUsize::new(0);
        let caller = Caller { http, urls, current, access_token, exposed_host, request_deadline, clock };
        Ok(Client { caller: Arc::new(caller) })
    }
}

fn parse_url(text: &str) -> Result<Url, ClientError> {
    let advice = || {
        let example = ClientBuilder::DEFAULT_URL;
        ClientError::Invalid(format!("{text:?} is not the URL of a node; write a URL such as {example}"))
    };
    let url = Url::parse(text).map_err(|_| advice())?;
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if url.scheme() == "http" && url.has_host() && plain { Ok(url) } else { Err(advice()) }
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or(host == "localhost", |ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests;
