//! Failures of a request to the service.

use std::time::Duration;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The secret does not belong to the room's current lease. This is said only after a linearizable read, because a
    /// holder takes it as proof that it has lost its lease.
    #[error("the lease is not current")]
    NotHolder,
    /// The cluster has as many live leases as it may have.
    #[error("live leases are at the configured maximum")]
    CapacityReached {
        /// The time until the next lease could end.
        retry_after: Duration,
    },
    /// Nothing was changed, and nothing will be.
    #[error("unavailable: {reason}")]
    Unavailable {
        /// The reason, for people.
        reason: String,
        /// The time after which a retry makes sense.
        retry_after: Duration,
    },
    /// The command may be committed already, may be committed later, or may never be.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
}
