//! The settings of the client listener.

use std::num::NonZeroU32;
use std::time::Duration;

use ipnet::IpNet;
use secrecy::SecretString;

/// Access, limits and times of the client listener. An operator can set some of them. The others have only a default.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Whether the election routes work. If not, they answer 403.
    pub elections_enabled: bool,
    /// The tokens that give access to the election routes. If there are none, everybody has access.
    pub access_tokens: Vec<SecretString>,
    /// The networks of trusted proxies. Their headers are believed when they name the client's address.
    pub trusted_proxies: Vec<IpNet>,
    /// How many room creations and campaigns one client may send in a minute. All of them may come at once.
    pub campaigns_per_minute: NonZeroU32,
    /// How many clients are counted one by one. All further clients share one budget, which limits the memory: 100,000
    /// clients take about 5 MB.
    pub tracked_clients_max: usize,
    /// How many campaigns and room creations may be in flight. As many other election requests may be in flight beside
    /// them, because waiting campaigns must not keep a holder from renewing. One client may have half of each.
    pub requests_in_flight_max: usize,
    /// How many watch streams one client may have.
    pub streams_per_client_max: usize,
    /// How many watch streams all clients may have together.
    pub streams_max: usize,
    /// How long a watch stream lasts. Its reader then connects again, perhaps to a node with fewer streams.
    pub stream_duration: Duration,
    /// How often a quiet stream sends a comment, to stay under the idle timeouts of common proxies.
    pub stream_keep_alive: Duration,
    /// The largest body, in bytes. The largest metadata takes 4 KiB, and up to three times as much if it is escaped.
    pub body_bytes_max: usize,
    /// How long a body may take to arrive. Without this limit, slow senders would pile up.
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
    /// How many connections can be of use. A request or stream on any further connection would be rejected.
    pub fn connections_of_use(&self) -> usize {
        self.requests_in_flight_max.saturating_mul(2).saturating_add(self.streams_max)
    }
}
