//! What an operator can set about the client listener.

use std::num::NonZeroU32;
use std::time::Duration;

use ipnet::IpNet;
use secrecy::SecretString;

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
