//! The results of commands and operations.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::FencingToken;
use super::view::RoomView;

/// The result of a command or an operation. Every node computes the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The contender holds the room now.
    Granted(RoomView),
    /// The room has a holder already. It may be the same contender, if an earlier request won.
    Occupied(RoomView),
    /// The lease lasts longer now.
    Renewed(RoomView),
    /// The room is vacant. Its last lease had this token.
    Resigned(FencingToken),
    /// The room as it stands.
    Viewed(RoomView),
    /// Log time moved on.
    Ticked {
        /// More leases are due than one tick may end, so another tick is needed at once.
        more_due: bool,
    },
    /// Done, and there is nothing to tell: an anchor, a floor, or an entry of Raft's own.
    Noted,
    /// The rules say no.
    Refused(Refusal),
}

/// For trace events: the kind.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Granted(_) => "granted",
            Outcome::Occupied(_) => "occupied",
            Outcome::Renewed(_) => "renewed",
            Outcome::Resigned(_) => "resigned",
            Outcome::Viewed(_) => "viewed",
            Outcome::Ticked { .. } => "ticked",
            Outcome::Noted => "noted",
            Outcome::Refused(_) => "refused",
        })
    }
}

/// Why the rules say no. A refusal is as much a fact of the log as a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The secret does not belong to the room's lease, or the room is vacant.
    NotHolder,
    /// The cluster has as many live leases as it may have, or has granted the highest fencing token.
    CapacityReached,
    /// The stamp and the log entry have different raft terms. The command must be stamped anew.
    StaleStamp,
    /// The fencing floor has not been raised in this raft term yet, so a grant could repeat a token.
    NotReady,
}

/// The raft leader's finding about a change, before it proposes anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The change must go through the log.
    Propose,
    /// Nothing would change. This is the outcome, if a read barrier confirms the state behind it.
    Answer(Outcome),
}
