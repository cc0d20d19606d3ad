//! How much of a node one client, or all of them, can take up.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use governor::clock::{Clock, DefaultClock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::ShrinkableKeyedStateStore;
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Edge;
use super::error::HttpError;
use crate::listen::{ClientKey, Share, Shares};

/// Counts the room creations and campaigns of each client, as a token bucket.
///
/// Renew, resign, status and watch aren't counted, so that no amount of campaigns strands a healthy holder.
pub struct Admission<C: Clock = DefaultClock> {
    limiter: RateLimiter<ClientKey, Buckets, C, NoOpMiddleware<C::Instant>>,
    per_minute: NonZeroU32,
    tracked_clients_max: usize,
    swept_at: Mutex<C::Instant>,
}

impl Admission {
    /// A budget for each client, for as many clients as are counted one by one.
    pub fn new(per_minute: NonZeroU32, tracked_clients_max: usize) -> Self {
        Self::with_clock(per_minute, tracked_clients_max, DefaultClock::default())
    }
}

impl<C: Clock> Admission<C> {
    /// Buckets that are full again are as good as none, and go.
    const SWEEP_EVERY: Duration = Duration::from_secs(60);
    /// A sweep of 100,000 buckets takes milliseconds, so a full table isn't swept for each request.
    const SWEEP_EVERY_WHEN_FULL: Duration = Duration::from_secs(1);

    fn with_clock(per_minute: NonZeroU32, tracked_clients_max: usize, clock: C) -> Self {
        let swept_at = Mutex::new(clock.now());
        let buckets = Buckets { table: Mutex::default(), tracked_clients_max };
        let limiter = RateLimiter::new(Quota::per_minute(per_minute), buckets, clock);
        Self { limiter, per_minute, tracked_clients_max, swept_at }
    }

    /// Takes one from the client's budget.
    pub fn check(&self, client: ClientKey) -> Result<(), HttpError> {
        self.sweep_if_due();
        self.limiter.check_key(&client).map_err(|not_until| HttpError::OverLimit {
            limit: format!("{} campaigns a minute per node", self.per_minute),
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

/// A table of buckets that doesn't grow past its limit: clients who don't fit in share one bucket.
struct Buckets {
    table: Mutex<Table>,
    tracked_clients_max: usize,
}

/// When each bucket will be full again: all that there is to know about it.
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

/// Proof that the client had some of its budget left. A handler that asks for it is a counted one.
pub struct Admitted;

impl FromRequestParts<Arc<Edge>> for Admitted {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, edge: &Arc<Edge>) -> Result<Self, HttpError> {
        let client = ClientKey::from_request_parts(parts, edge).await?;
        edge.admission.check(client).map(|()| Admitted)
    }
}

/// Places for so many at a time, of which one client may have its share. Who gets none is turned away at once: a queue
/// would only make all of them late.
pub struct Places {
    places: Arc<Semaphore>,
    max: usize,
    shares: Arc<Shares>,
    per_client_max: usize,
}

impl Places {
    /// All of them free.
    pub fn new(max: usize, per_client_max: usize) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { places, max, shares: Shares::new(per_client_max), per_client_max })
    }

    /// The places of a group of routes for requests in flight. Half of them are left to other clients, whatever one
    /// client sends.
    pub fn for_requests(in_flight_max: usize) -> Arc<Self> {
        Self::new(in_flight_max, in_flight_max.div_ceil(2))
    }

    /// Those of the group that the request's route is in.
    pub fn of_route(extensions: &Extensions) -> Result<Arc<Self>, HttpError> {
        let places = extensions.get::<Arc<Self>>().cloned();
        places.ok_or_else(|| HttpError::Bug { cause: "the route is in no group that has places".to_owned() })
    }

    /// One for a request of this client.
    pub fn take_for_request(&self, client: ClientKey) -> Result<Place, HttpError> {
        self.take(client).map_err(|taken| HttpError::NotNow {
            reason: match taken {
                Taken::All => "too many requests at once".to_owned(),
                Taken::Share => "too many requests at once of this client".to_owned(),
            },
        })
    }

    /// One for a watch stream of this client.
    pub fn take_for_stream(&self, client: ClientKey) -> Result<Place, HttpError> {
        /// Nobody knows when a stream will end; this is often enough to get the next free place.
        const RETRY_AFTER: Duration = Duration::from_secs(10);
        self.take(client).map_err(|taken| HttpError::OverLimit {
            limit: match taken {
                Taken::All => format!("{} watch streams per node", self.max),
                Taken::Share => format!("{} watch streams a client per node", self.per_client_max),
            },
            retry_after: RETRY_AFTER,
        })
    }

    fn take(&self, client: ClientKey) -> Result<Place, Taken> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| Taken::All)?;
        let share = self.shares.take(client).ok_or(Taken::Share)?;
        Ok(Place { _place: place, _share: share })
    }
}

/// Why there is no place.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    /// All of them are taken.
    All,
    /// This client has its share.
    Share,
}

/// Held for as long as a request is decided, or a stream is open.
///
/// A handler asks for it last, and one with a body gets it with the body: a place that is taken while a client may
/// still keep the node waiting is one that clients can take for nothing.
pub struct Place {
    _place: OwnedSemaphorePermit,
    _share: Share,
}

impl FromRequestParts<Arc<Edge>> for Place {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, edge: &Arc<Edge>) -> Result<Self, HttpError> {
        let client = ClientKey::from_request_parts(parts, edge).await?;
        Places::of_route(&parts.extensions)?.take_for_request(client)
    }
}

#[cfg(test)]
mod tests;
