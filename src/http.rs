//! The client listener: JSON in, JSON out. Nothing about rooms is decided here.
//!
//! ```text
//! caller ───► connections   is there a place for one more, and for one more of this caller?
//! request ──► envelope   request id, one trace event, and errors made into JSON, whoever made them
//!             gate       may this caller use elections at all?      (election routes only)
//!             extract    path, headers and body, or a 400
//!             limits     is there room for it now?                  (election routes only)
//!             rooms, watch, health   call the service and say what it said
//! ```
//!
//! What is asked of a caller is told by the group in `router` that a route is in, so that a new route is
//! guarded unless it says otherwise.

mod client_address;
mod envelope;
mod error;
mod extract;
mod gate;
mod health;
mod limits;
mod openapi;
mod rooms;
mod router;
mod watch;

#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use secrecy::SecretString;

pub use router::build_router;

use crate::random::Random;
use crate::service::RoomService;

/// What an operator can set about the client listener.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Whether the election routes work at all.
    pub elections_enabled: bool,
    /// Who may use the election routes: holders of any of these, or everybody if there are none.
    pub access_tokens: Vec<SecretString>,
    /// Whose word on the client's address counts.
    pub trusted_proxies: Vec<IpNet>,
    /// Room creations and campaigns of one client in a minute, and how many of them may come at once.
    pub campaigns_per_minute: NonZeroU32,
    /// How many clients are counted one by one. Those beyond it share one budget, so that memory is bounded
    /// whatever addresses call: 100,000 of them take about 5 MB.
    pub tracked_clients_max: usize,
    /// How many campaigns may be in progress, and apart from these how many other election requests: waiting
    /// campaigns must not keep a holder from renewing. One client may have half of each.
    pub requests_in_flight_max: usize,
    /// Watch streams of one client.
    pub streams_per_client_max: usize,
    /// Watch streams of all clients.
    pub streams_max: usize,
    /// How long a watch stream lasts. Its reader comes back, maybe to a node with fewer of them.
    pub stream_duration: Duration,
    /// How often a quiet stream shows that it is alive: well within the idle limits of common proxies.
    pub stream_keep_alive: Duration,
    /// The largest body: the largest metadata takes 4 KiB, and up to three times that if it is escaped.
    pub body_bytes_max: usize,
    /// How long a body may take to arrive, so that slow senders don't pile up.
    pub body_deadline: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            elections_enabled: true,
            access_tokens: Vec::new(),
            trusted_proxies: Vec::new(),
            campaigns_per_minute: NonZeroU32::new(600).expect("600 is not zero"),
            tracked_clients_max: 100_000,
            requests_in_flight_max: 10_000,
            streams_per_client_max: 8,
            streams_max: 1_024,
            stream_duration: Duration::from_secs(900),
            stream_keep_alive: Duration::from_secs(15),
            body_bytes_max: 16 * 1024,
            body_deadline: Duration::from_secs(10),
        }
    }
}

impl HttpSettings {
    /// How many connections can be of use: a request or a stream on more of them would be turned away.
    pub fn connections_of_use(&self) -> usize {
        self.requests_in_flight_max.saturating_mul(2).saturating_add(self.streams_max)
    }
}

/// What all handlers share.
struct Edge {
    service: RoomService,
    settings: HttpSettings,
    random: Arc<dyn Random>,
    access: gate::Access,
    admission: limits::Admission,
    streams: Arc<limits::Places>,
}

impl Edge {
    fn new(service: RoomService, settings: HttpSettings, random: Arc<dyn Random>) -> Arc<Self> {
        Arc::new(Self {
            service,
            random,
            access: gate::Access::new(&settings),
            admission: limits::Admission::new(settings.campaigns_per_minute, settings.tracked_clients_max),
            streams: limits::Places::new(settings.streams_max, settings.streams_per_client_max),
            settings,
        })
    }
}
