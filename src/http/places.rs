//! How many requests and watch streams may be open at a time, in all and of one client.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::HttpError;
use crate::listen::{ClientKey, Share, Shares};

/// A number of places, of which one client may have its share. A request without a place is rejected at once, because a
/// queue would only make every request late.
pub struct Places {
    places: Arc<Semaphore>,
    max: usize,
    shares: Arc<Shares>,
    per_client_max: usize,
}

impl Places {
    /// Places that are all free.
    pub fn new(max: usize, per_client_max: usize) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { places, max, shares: Shares::new(per_client_max), per_client_max })
    }

    /// Places for the requests in flight of a group of routes. One client can take half of them at most.
    pub fn for_requests(in_flight_max: usize) -> Arc<Self> {
        Self::new(in_flight_max, in_flight_max.div_ceil(2))
    }

    /// The places of the group that the request's route belongs to.
    pub fn of_route(extensions: &Extensions) -> Result<Arc<Self>, HttpError> {
        let places = extensions.get::<Arc<Self>>().cloned();
        places.ok_or_else(|| HttpError::Bug { cause: "the route belongs to no group with places".to_owned() })
    }

    /// Takes a place for a request of this client.
    pub fn take_for_request(&self, client: ClientKey) -> Result<Place, HttpError> {
        self.take(client).map_err(|taken| HttpError::NotNow {
            reason: match taken {
                Taken::All => {
                    "this node has too many requests in flight; retry after retry_after_ms, or at another node"
                        .to_owned()
                }
                Taken::Share => {
                    "this client has too many requests in flight at this node; wait for one of them to end".to_owned()
                }
            },
        })
    }

    /// Takes a place for a watch stream of this client.
    pub fn take_for_stream(&self, client: ClientKey) -> Result<Place, HttpError> {
        /// The node can't know when the next stream ends. With this pause, a client gets a free place soon.
        const RETRY_AFTER: Duration = Duration::from_secs(10);
        self.take(client).map_err(|taken| HttpError::OverLimit {
            limit: match taken {
                Taken::All => format!("this node allows {} watch streams in all; watch at another node", self.max),
                Taken::Share => format!(
                    "this node allows each client {} watch streams; close one, or watch at another node",
                    self.per_client_max
                ),
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
    /// All places are taken.
    All,
    /// This client has its share.
    Share,
}

/// Held while a request is being decided, or while a stream is open.
///
/// A handler takes it last, and a handler with a body takes it after the body. Taken earlier, places could be filled by
/// clients that never finish their requests.
pub struct Place {
    _place: OwnedSemaphorePermit,
    _share: Share,
}

#[cfg(test)]
mod tests;
