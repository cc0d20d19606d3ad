//! How many room creations and campaigns each client may send.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::ShrinkableKeyedStateStore;
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;

use super::error::HttpError;
use crate::listen::ClientKey;

/// Counts the room creations and campaigns of each client, as a token bucket.
///
/// Renew, resign, view and watch are not counted. So a holder can renew even if its client's budget is used up.
pub struct Admission<C: Clock = DefaultClock> {
    limiter: RateLimiter<ClientKey, Buckets, C, NoOpMiddleware<C::Instant>>,
    per_minute: NonZeroU32,
    tracked_clients_max: usize,
    swept_at: Mutex<C::Instant>,
}

impl Admission {
    /// Every client has its whole budget. At most `tracked_clients_max` clients have a budget of their own.
    pub fn new(per_minute: NonZeroU32, tracked_clients_max: usize) -> Self {
        Self::with_clock(per_minute, tracked_clients_max, DefaultClock::default())
    }
}

impl<C: Clock> Admission<C> {
    /// The time between two removals of full buckets. A missing bucket counts as full.
    const SWEEP_EVERY: Duration = Duration::from_secs(60);
    /// The same for a full table. A sweep of 100,000 buckets takes milliseconds, which is too long for every request.
    const SWEEP_EVERY_WHEN_FULL: Duration = Duration::from_secs(1);

    fn with_clock(per_minute: NonZeroU32, tracked_clients_max: usize, clock: C) -> Self {
        let swept_at = Mutex::new(clock.now());
        let buckets = Buckets { table: Mutex::default(), tracked_clients_max };
        let limiter = RateLimiter::new(Quota::per_minute(per_minute), buckets, clock);
        Self { limiter, per_minute, tracked_clients_max, swept_at }
    }

    /// Takes one request from the client's budget.
    pub fn check(&self, client: ClientKey) -> Result<(), HttpError> {
        self.sweep_if_due();
        self.limiter.check_key(&client).map_err(|not_until| HttpError::OverLimit {
            limit: format!(
                "this node allows each client {} room creations and campaigns a minute; retry after retry_after_ms, or \
                 at another node",
                self.per_minute
            ),
            retry_after: not_until.wait_time_from(self.limiter.clock().now()),
        })
    }

    fn sweep_if_due(&self) {
        let is_full = self.limiter.len() >= self.tracked_clients_max;
        let every = if is_full { Self::SWEEP_EVERY_WHEN_FULL } else { Self::SWEEP_EVERY };
        let now = self.limiter.clock().now();
        {
            let mut swept_at = self.swept_at.lock();
            if Duration::from(now.duration_since(*swept_at)) < every {
                return;
            }
            *swept_at = now;
        }
        self.limiter.retain_recent();
    }
}

/// A table of buckets that does not grow past its limit. Clients that don't fit in share one bucket.
struct Buckets {
    table: Mutex<Table>,
    tracked_clients_max: usize,
}

/// When each bucket will be full again. This is the whole state of a bucket.
#[derive(Default)]
struct Table {
    clients: HashMap<ClientKey, Nanos>,
    others: Option<Nanos>,
}

impl StateStore for Buckets {
    type Key = ClientKey;

    fn measure_and_replace<T, F, E>(&self, client: &ClientKey, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut table = self.table.lock();
        let known = table.clients.get(client).copied();
        if known.is_none() && table.clients.len() >= self.tracked_clients_max {
            let (answer, full_at) = measure(table.others)?;
            table.others = Some(full_at);
            return Ok(answer);
        }
        let (answer, full_at) = measure(known)?;
        table.clients.insert(*client, full_at);
        Ok(answer)
    }
}

impl ShrinkableKeyedStateStore<ClientKey> for Buckets {
    fn retain_recent(&self, drop_below: Nanos) {
        self.table.lock().clients.retain(|_, full_at| *full_at > drop_below);
    }

    fn len(&self) -> usize {
        self.table.lock().clients.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
