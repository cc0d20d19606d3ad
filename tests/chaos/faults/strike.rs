//! One injected fault, and the effect that it must have had.

use crate::outside::now;
use crate::workload::history::{Fault, MILLI, Moment, SECOND};

/// How long the nodes may take to serve again once a fault is undone.
pub const HEALING_MAX: Moment = 30 * SECOND;
/// Without a raft leader for this long, the other nodes have certainly elected another, even on a busy machine.
pub const RAFT_ELECTION_MAX: Moment = 3_500 * MILLI;
/// How long no change may be acknowledged while two nodes reach each other. It allows for a raft election, and for the
/// 2.5 s or less that a client waits for a node that doesn't answer.
pub const OUTAGE_MAX: Moment = 6 * SECOND;

/// One fault, and the effect that it must have had. A run whose faults have no effect proves nothing.
pub struct Strike {
    pub fault: Fault,
    /// Whether the nodes needed another raft election to go on.
    pub needs_raft_election: bool,
    /// What shows that the fault had no effect, if it had none.
    pub missed: Option<String>,
    /// How long no change may be acknowledged while the fault lasts. There is a limit only if two nodes still reach
    /// each other.
    pub outage_max: Moment,
    /// Whether the checker is told of the fault. It then allows for what the fault may cost.
    pub is_excuse: bool,
}

impl Strike {
    /// A fault that had its full effect from `cut` on, and is about to be undone.
    pub fn new(name: impl Into<String>, cut: Moment, without_quorum: Vec<usize>) -> Strike {
        let fault = Fault { name: name.into(), from: cut, undone: now(), healed: None, without_quorum, cut };
        Strike { fault, needs_raft_election: false, missed: None, outage_max: Moment::MAX, is_excuse: true }
    }

    pub fn needs_raft_election(self, needs_raft_election: bool) -> Strike {
        Strike { needs_raft_election, ..self }
    }

    pub fn leaves_a_quorum(self, quorum: bool) -> Strike {
        Strike { outage_max: if quorum { OUTAGE_MAX } else { Moment::MAX }, ..self }
    }

    pub fn missed(self, missed: Option<String>) -> Strike {
        Strike { missed, ..self }
    }
}
