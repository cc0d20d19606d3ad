//! The client: campaign for a room, keep the lease, and stop in time.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.rs"));
//! # async fn write_the_report(_: quorate::domain::FencingToken) -> String { "done".into() }
//! # fn main() { with_a_node(async |node| {
//! use quorate::client::Client;
//!
//! let nodes = ["http://a:7400", "http://b:7400", "http://c:7400"];
//! # let nodes = node;
//! let client = Client::builder().urls(nodes).build()?;
//! let leadership = client.election("nightly-report")?.campaign("worker-a")?.wait().await?;
//! // Renewed in the background. If it is lost, the work is dropped at once; if not, the room is given up after it.
//! let term = leadership.term();
//! let report = leadership.run(write_the_report(term)).await?;
//! # assert_eq!(report, "done");
//! # Ok(()) }) }
//! ```
//!
//! What a holder can rely on:
//!
//! - It stops early, never late. Authority ends at 80 % of the lease, counted from before the first byte of the
//!   request that won or renewed it, on clocks that count suspends ([`holder_clock`](HolderClock)). The other
//!   20 % are for the work to stop.
//! - A node that fails, hangs or answers 5xx is neither loss nor success: another one is asked, until the
//!   deadline decides.
//! - A [`Leadership`] that was lost stays lost. To lead again is another campaign, with a higher term.
//! - Work that was paused can't know that it is late. Send the term along with every write, and let the target
//!   refuse lower ones than it has seen.

mod backoff;
mod campaign;
mod error;
mod held_lease;
mod holder_clock;
mod leadership;
mod lease_keeper;
mod retry;
mod watch;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures::Stream;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

pub use campaign::{Attempt, Campaign, Granted, Waiting};
pub use error::{ClientError, Refusal};
pub use held_lease::{LeadershipState, LossReason, Standing};
pub use holder_clock::{Deadline, HolderClock, HolderInstant, SystemHolderClock};
pub use leadership::{Leadership, Observer};

use crate::domain::{ContenderId, RoomId};
use crate::wire::{ErrorCode, LeaderToken, ResignRequest, Resigned, RoomCreated, RoomStatus, WatchEvent};
use retry::{Call, Caller};

/// How long a request may take, with all its tries, unless the builder says otherwise.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// A connection is there within this, or isn't worth waiting for.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// A handle to a cluster. Clones share connections, and which node is asked first.
#[derive(Clone)]
pub struct Client {
    caller: Arc<Caller>,
    request_deadline: Duration,
    /// To which machine a token would go in clear, if that isn't allowed.
    exposed_host: Option<String>,
}

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

    /// The election of a room.
    ///
    /// # Errors
    /// If `room` isn't 8 to 64 characters of `A-Z a-z 0-9 _ -`.
    pub fn election(&self, room: &str) -> Result<Election, ClientError> {
        Ok(Election { client: self.clone(), room: RoomId::new(room)? })
    }

    /// Makes a room with an id that nobody can guess.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn create(&self) -> Result<RoomCreated, ClientError> {
        let call = Call { body: None, ..Call::post("/elections".into(), &()) };
        Ok(self.caller.call(&call, self.deadline()).await?.body)
    }

    /// The node that is asked first: the one that answered last.
    pub fn server(&self) -> &str {
        self.caller.current_server()
    }

    fn deadline(&self) -> Deadline {
        Deadline::new(self.caller.clock.now(), self.request_deadline)
    }

    fn may_send_secrets(&self) -> Result<(), ClientError> {
        match self.exposed_host.clone() {
            None => Ok(()),
            Some(host) => Err(ClientError::Cleartext { host }),
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
        let (access_token, clock) = (self.access_token, self.clock);
        let caller = Arc::new(Caller { http, urls, current: AtomicUsize::new(0), access_token, clock });
        Ok(Client { caller, request_deadline: self.request_deadline, exposed_host })
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

/// One room.
#[derive(Clone)]
pub struct Election {
    client: Client,
    room: RoomId,
}

impl Election {
    /// Which room.
    pub fn room(&self) -> &RoomId {
        &self.room
    }

    /// Who leads, by a linearizable read.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<RoomStatus, ClientError> {
        let call = Call::get(format!("/elections/{}", self.room));
        Ok(self.client.caller.call(&call, self.client.deadline()).await?.body)
    }

    /// How the room stands now, and again at each change, for as long as the stream is polled.
    ///
    /// A stream of a node that breaks off is taken up with another node, by a fresh read: an event in between may
    /// be missed, the state never. An error is final, for it says that asking again won't help.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.rs"));
    /// # fn main() { with_a_node(async |node| {
    /// # let client = quorate::client::Client::builder().urls(node).build()?;
    /// # let leadership = client.election("nightly-report")?.campaign("worker-a")?.wait().await?;
    /// use futures::StreamExt;
    ///
    /// let mut events = Box::pin(client.election("nightly-report")?.watch());
    /// while let Some(event) = events.next().await {
    ///     let Some(leader) = event?.leader else { continue };
    ///     println!("{} leads, term {}", leader.candidate_id, leader.term);
    /// #   assert_eq!(leader.term, leadership.term());
    /// #   break;
    /// }
    /// # Ok(()) }) }
    /// ```
    pub fn watch(&self) -> impl Stream<Item = Result<WatchEvent, ClientError>> + Send + use<> {
        watch::watch(self.clone())
    }

    /// A campaign of this candidate. Nothing is sent yet.
    ///
    /// # Errors
    /// If `candidate` isn't 1 to 64 characters of `A-Z a-z 0-9 . _ : @ -`, or if tokens would be sent in clear to
    /// another machine.
    pub fn campaign(&self, candidate: &str) -> Result<Campaign, ClientError> {
        self.client.may_send_secrets()?;
        Ok(Campaign::new(self.clone(), ContenderId::new(candidate)?))
    }

    /// Ends a lease that nobody keeps here any more, by its token. `None` if it had ended already.
    ///
    /// # Errors
    /// See [`ClientError`]. After `OutcomeUnknown` the room may be vacant.
    pub async fn resign(&self, token: LeaderToken) -> Result<Option<Resigned>, ClientError> {
        self.client.may_send_secrets()?;
        self.resign_by(token, self.client.deadline()).await
    }

    async fn resign_by(&self, token: LeaderToken, deadline: Deadline) -> Result<Option<Resigned>, ClientError> {
        let call = Call::post(format!("/elections/{}/resign", self.room), &ResignRequest { leader_token: token });
        match self.client.caller.call(&call, deadline).await {
            Ok(answer) => Ok(Some(answer.body)),
            // Perhaps by an earlier try of this call, whose answer was lost.
            Err(ClientError::Refused(refusal)) if refusal.is(ErrorCode::LeaseNotCurrent) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
