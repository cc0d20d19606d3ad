//! Why a request got no answer from the rules.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What the caller of the service has to know about a failure. It travels between nodes as well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ServiceError {
    /// The secret is not that of the room's lease. Only ever said after a linearizable look: a holder takes it
    /// as proof that it has lost.
    #[error("the lease is not current")]
    NotHolder,
    /// As many leases live as may.
    #[error("live leases are at the configured maximum")]
    CapacityReached {
        /// When a lease could have ended.
        retry_after: Duration,
    },
    /// Nothing was changed, and nothing will be.
    #[error("unavailable: {reason}")]
    Unavailable {
        /// Why, for people.
        reason: String,
        /// When it may be worth asking again.
        retry_after: Duration,
    },
    /// The command may have been committed, may yet be, or may never be.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
}
