//! Which part of the time faults may have disturbed.

use super::super::history::{Fault, History, Moment, SECOND};

/// How much longer than until all nodes are ready a fault may disturb. A node that comes back may cause a raft
/// election.
pub const SETTLING: Moment = SECOND;

/// The part of the time between two moments that a fault or its consequences may have disturbed.
pub fn disturbed(fault: &Fault, from: Moment, to: Moment) -> Option<(Moment, Moment)> {
    let over = fault.healed.unwrap_or(to).max(fault.undone) + SETTLING;
    let (from, to) = (fault.from.max(from), over.min(to));
    (from <= to).then_some((from, to))
}

/// Whether no fault can have disturbed the time between two moments.
pub fn is_calm(history: &History, from: Moment, to: Moment) -> bool {
    history.faults.iter().all(|fault| disturbed(fault, from, to).is_none())
}
