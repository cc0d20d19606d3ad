//! How many requests and watch streams may be open at a time, in all and of one client.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::HttpError;
use crate::listen::{ClientKey, Share, Shares};

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

#[cfg(test)]
mod tests;
