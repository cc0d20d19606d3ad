//! One fault, and what must have come of it.

use crate::outside::now;
use crate::workload::history::{Fault, MILLI, Moment, SECOND};

/// How long everything may take to serve again once a fault is undone.
pub const HEALING_MAX: Moment = 30 * SECOND;
/// By when others have certainly elected a raft leader in place of one that is gone, on a busy machine.
pub const ELECTION_MAX: Moment = 3_500 * MILLI;
/// How long nobody may be served while two nodes reach each other: a raft election, and the patience of clients, up to
/// 2.5 s, with a node that doesn't answer.
pub const OUTAGE_MAX: Moment = 6 * SECOND;

/// Something that was done to the nodes, and what must have come of it. A run whose faults struck nothing proves
/// nothing.
pub struct Strike {
    pub fault: Fault,
    /// Whether the nodes cannot have gone on without another raft election.
    pub elects: bool,
    /// How it is known that it struck nothing, if so.
    pub missed: Option<String>,
    /// How long nobody may be served while it lasts: long enough for a raft election where it leaves two nodes that
    /// reach each other, any time where it doesn't.
    pub outage_max: Moment,
    /// Whether the checker is told of it, and so allows for what it may cost.
    pub excuse: bool,
}

impl Strike {
    /// One that began with `cut` and is about to be undone.
    pub fn new(name: impl Into<String>, cut: Moment, without_quorum: Vec<usize>) -> Strike {
        let fault = Fault { name: name.into(), from: cut, undone: now(), healed: None, without_quorum, cut };
        Strike { fault, elects: false, missed: None, outage_max: Moment::MAX, excuse: true }
    }

    pub fn elects(self, elects: bool) -> Strike {
        Strike { elects, ..self }
    }

    pub fn leaves_a_quorum(self, quorum: bool) -> Strike {
        Strike { outage_max: if quorum { OUTAGE_MAX } else { Moment::MAX }, ..self }
    }

    pub fn missed(self, missed: Option<String>) -> Strike {
        Strike { missed, ..self }
    }
}
