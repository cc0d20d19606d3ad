//! Settings of the service.

use std::time::Duration;

use crate::domain::Limits;

/// Settings of the service.
#[derive(Debug, Clone, Copy)]
pub struct ServiceSettings {
    /// The timeout of a request, except for the time that a campaign waits for its room.
    pub request_deadline: Duration,
    /// At most this many leases may live at once, in the whole cluster.
    pub live_leases_max: u64,
}

impl ServiceSettings {
    pub(super) fn limits(&self) -> Limits {
        Limits { live_leases_max: self.live_leases_max }
    }
}

impl Default for ServiceSettings {
    fn default() -> Self {
        // Five seconds are longer than a raft election and a retry after it.
        Self { request_deadline: Duration::from_secs(5), live_leases_max: 100_000 }
    }
}
