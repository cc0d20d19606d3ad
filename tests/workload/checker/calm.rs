//! Times in which nothing was done to the nodes.

use super::super::history::{Fault, History, Moment, SECOND};

/// Nodes that are ready may have a raft election ahead of them: what was paused or cut off has just come back.
pub const SETTLING: Moment = SECOND;

/// What of the time between two moments a fault or its consequences took.
pub fn disturbed(fault: &Fault, from: Moment, to: Moment) -> Option<(Moment, Moment)> {
    let over = fault.healed.unwrap_or(to).max(fault.undone) + SETTLING;
    let (from, to) = (fault.from.max(from), over.min(to));
    (from <= to).then_some((from, to))
}

/// Whether nothing that was done to the nodes can be the cause of what happened between two moments.
pub fn is_calm(history: &History, from: Moment, to: Moment) -> bool {
    history.faults.iter().all(|fault| disturbed(fault, from, to).is_none())
}
