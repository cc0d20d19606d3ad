//! How much of a node one client, or all of them, can take up.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock, DefaultClock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::ShrinkableKeyedStateStore;
use governor::{Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Edge;
use super::client_address::ClientKey;
use super::error::HttpError;
use super::shares::{Share, Shares};

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
            let mut swept_at = lock(&self.swept_at);
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
        let mut table = lock(&self.table);
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
        lock(&self.table).clients.retain(|_, full_at| *full_at > drop_below);
    }

    fn len(&self) -> usize {
        lock(&self.table).clients.len()
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

/// Lets as many requests in as there are permits, and turns the others away at once: a queue would only make
/// all of them late.
pub async fn hold_a_place(
    State(places): State<Arc<Semaphore>>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    let _place =
        places.try_acquire().map_err(|_| HttpError::NotNow { reason: "too many requests at once".to_owned() })?;
    Ok(next.run(request).await)
}

/// The places of one group of routes.
pub fn places(requests_in_flight_max: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(requests_in_flight_max.min(Semaphore::MAX_PERMITS)))
}

/// Counts open watch streams.
pub struct Streams {
    places: Arc<Semaphore>,
    max: usize,
    shares: Arc<Shares>,
    per_client_max: usize,
}

impl Streams {
    /// When to try again. Nobody knows when a stream will end; this is often enough to get the next free place.
    const RETRY_AFTER: Duration = Duration::from_secs(10);

    /// No streams yet.
    pub fn new(per_client_max: usize, streams_max: usize) -> Self {
        Self { places: places(streams_max), max: streams_max, shares: Shares::new(per_client_max), per_client_max }
    }

    /// A place for one more stream of this client.
    pub fn open(&self, client: ClientKey) -> Result<StreamPlace, HttpError> {
        let over = |limit| HttpError::OverLimit { limit, retry_after: Self::RETRY_AFTER };
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| over(format!("{} watch streams per node", self.max)))?;
        let share = self.shares.take(client);
        let share = share.ok_or_else(|| over(format!("{} watch streams a client per node", self.per_client_max)))?;
        Ok(StreamPlace { _place: place, _share: share })
    }
}

/// Held for as long as a stream is open.
pub struct StreamPlace {
    _place: OwnedSemaphorePermit,
    _share: Share,
}

/// A lock whose holder panicked is taken all the same: a count that is off by one is better than no service.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn client(number: u32) -> ClientKey {
        ClientKey::of(Ipv4Addr::from_bits(number).into())
    }

    fn admission(per_minute: u32, tracked_clients_max: usize) -> (Admission<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Admission::with_clock(NonZeroU32::new(per_minute).unwrap(), tracked_clients_max, clock.clone()), clock)
    }

    fn retry_after(result: Result<(), HttpError>) -> Duration {
        match result {
            Err(HttpError::OverLimit { retry_after, .. }) => retry_after,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_client_gets_its_budget_at_once_and_then_at_its_rate() {
        let (admission, clock) = admission(600, 100);
        for _ in 0..600 {
            admission.check(client(1)).unwrap();
        }
        assert_eq!(retry_after(admission.check(client(1))), Duration::from_millis(100));
        admission.check(client(2)).unwrap();
        clock.advance(Duration::from_millis(100));
        admission.check(client(1)).unwrap();
        retry_after(admission.check(client(1)));
    }

    #[test]
    fn clients_past_the_table_share_one_budget_and_known_ones_keep_theirs() {
        let (admission, _clock) = admission(10, 3);
        for number in 0..3 {
            admission.check(client(number)).unwrap();
        }
        for number in 100..110 {
            admission.check(client(number)).unwrap();
        }
        retry_after(admission.check(client(999)));
        admission.check(client(0)).unwrap();
    }

    #[test]
    fn a_million_clients_take_no_more_memory_than_the_table_has() {
        let (admission, _clock) = admission(600, 1_000);
        for number in 0..1_000_000 {
            let _ = admission.check(client(number));
        }
        assert_eq!(admission.limiter.len(), 1_000);
    }

    #[test]
    fn clients_with_a_full_bucket_make_room_for_others() {
        let (admission, clock) = admission(600, 1_000);
        for number in 0..1_000 {
            admission.check(client(number)).unwrap();
        }
        clock.advance(Duration::from_secs(2));
        admission.check(client(5_000)).unwrap();
        assert_eq!(admission.limiter.len(), 1);
    }

    #[test]
    fn streams_are_limited_by_client_and_in_all_and_freed_when_dropped() {
        let streams = Streams::new(2, 3);
        let first = streams.open(client(1)).unwrap();
        let _second = streams.open(client(1)).unwrap();
        assert!(streams.open(client(1)).is_err(), "two a client");
        let other = streams.open(client(2)).unwrap();
        assert!(streams.open(client(3)).is_err(), "three in all");
        drop((first, other));
        streams.open(client(1)).unwrap();
    }
}
