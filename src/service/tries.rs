//! What the tries of one campaign have in common. One that waits has many, and each stands for the same request.

use std::sync::atomic::{AtomicBool, Ordering};

use super::decide::Submitted;
use super::{CampaignRequest, IdempotencyKey, ServiceError};
use crate::random::Random;

/// A campaign that is tried until it is over.
pub struct Tries {
    /// As the caller made it.
    pub request: CampaignRequest,
    /// The caller's, or one of this request's own: a later try knows by it what an earlier one won, whose answer was
    /// lost on the way. With a key for each, it would wait for the end of its own caller's lease.
    pub key: IdempotencyKey,
    maybe_won: AtomicBool,
}

impl Tries {
    /// A campaign that hasn't been tried yet.
    pub fn new(request: CampaignRequest, random: &dyn Random) -> Self {
        let key = request.idempotency_key.clone().unwrap_or_else(|| IdempotencyKey::generate(random));
        Self { request, key, maybe_won: AtomicBool::new(false) }
    }

    /// Takes note of what became of a try.
    pub fn note(&self, submitted: &Result<Submitted, ServiceError>) {
        let is_unknown = match submitted {
            Ok(submitted) => submitted.maybe_done_before,
            Err(error) => *error == ServiceError::OutcomeUnknown,
        };
        self.maybe_won.fetch_or(is_unknown, Ordering::Relaxed);
    }

    /// Whether a try so far may have won without anybody knowing. No later answer takes that back: what was sent to a
    /// node that is out of touch may be decided at any time.
    pub fn maybe_won(&self) -> bool {
        self.maybe_won.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
