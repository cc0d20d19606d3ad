//! How a client is set up: its settings, what they may be, and the connection pool made from them.

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

/// How long a request may take, with all its tries, unless the builder says otherwise.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// A connection is there within this, or isn't worth waiting for.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// Settings of a [`Client`].
#[must_use]
pub struct ClientBuilder {
    urls: Vec<String>,
    request_deadline: Duration,
    access_token: Option<SecretString>,
    allow_insecure_http: bool,
    clock: Arc<dyn HolderClock>,
}

impl Client {
    /// A client of the node on this machine, to be changed.
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
    /// The nodes, as `http://host:port`. Without this, `http://127.0.0.1:7400`.
    pub fn urls<U: Into<String>>(mut self, urls: impl IntoIterator<Item = U>) -> Self {
        self.urls = urls.into_iter().map(Into::into).collect();
        self
    }

    /// How long a request may take, with all its tries. Waiting campaigns and renewals have their own limits.
    pub fn request_deadline(mut self, duration: Duration) -> Self {
        self.request_deadline = duration;
        self
    }

    /// What the cluster asks of its clients, if it does: it is sent as `Authorization: Bearer`.
    pub fn access_token(mut self, token: SecretString) -> Self {
        self.access_token = Some(token);
        self
    }

    /// Lets tokens travel unencrypted to other machines. Whoever reads them can resign and renew for the holder.
    pub fn allow_insecure_http(mut self, allow: bool) -> Self {
        self.allow_insecure_http = allow;
        self
    }

    /// Another clock, for tests.
    pub fn clock(mut self, clock: Arc<dyn HolderClock>) -> Self {
        self.clock = clock;
        self
    }

    /// The client.
    ///
    /// # Errors
    /// If a URL or the access token can't be used.
    pub fn build(self) -> Result<Client, ClientError> {
        let urls = if self.urls.is_empty() { vec!["http://127.0.0.1:7400".to_owned()] } else { self.urls };
        let parsed = urls.iter().map(|url| parse_url(url)).collect::<Result<Vec<_>, _>>()?;
        let exposed = parsed.iter().find(|url| !self.allow_insecure_http && !is_loopback(url));
        let exposed_host = exposed.map(|url| url.host_str().unwrap_or_default().to_owned());
        if let Some(token) = &self.access_token {
            if !token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(ClientError::Invalid("an access token is visible ASCII without spaces".into()));
            }
            if let Some(host) = exposed_host {
                return Err(ClientError::Cleartext { host });
            }
        }
        let agent = concat!("quorate/", env!("CARGO_PKG_VERSION"));
        // A proxy from the environment is for the outside world, not for the nodes; and a redirect would carry a
        // token to who knows whom.
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
    let advice = || ClientError::Invalid(format!("{text:?} is no URL of a node; write it as http://127.0.0.1:7400"));
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
