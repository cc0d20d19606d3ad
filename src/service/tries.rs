//! The tries of one campaign. A campaign that waits has many, and each stands for the same request.

use std::sync::atomic::{AtomicBool, Ordering};

use super::decide::Decided;
use super::error::ServiceError;
use super::request::CampaignRequest;
use super::secrets::IdempotencyKey;
use crate::domain::Outcome;
use crate::random::Random;

/// A campaign that is tried until it is over.
pub struct Tries {
    /// The caller's request.
    pub request: CampaignRequest,
    /// The caller's key, or one that is made for this request. All tries share it. So a later try recognises the lease
    /// of an earlier try whose answer was lost. With a new key for each try, it would wait for the end of its own
    /// caller's lease.
    pub key: IdempotencyKey,
    maybe_won: AtomicBool,
}

impl Tries {
    /// A campaign before its first try.
    pub fn new(request: CampaignRequest, random: &dyn Random) -> Self {
        let key = request.idempotency_key.clone().unwrap_or_else(|| IdempotencyKey::generate(random));
        Self { request, key, maybe_won: AtomicBool::new(false) }
    }

    /// Notes the result of a try.
    pub fn note(&self, result: &Result<Decided<Outcome>, ServiceError>) {
        let is_unknown = match result {
            Ok(decided) => decided.maybe_done_before,
            Err(error) => *error == ServiceError::OutcomeUnknown,
        };
        self.maybe_won.fetch_or(is_unknown, Ordering::Relaxed);
    }

    /// Whether a try may have won although its outcome is unknown. No later answer changes that, because a node that
    /// cannot be reached may decide an operation at any time.
    pub fn maybe_won(&self) -> bool {
        self.maybe_won.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
