//! What must be true of the nodes at every moment, whatever clients see of it.

use std::collections::BTreeMap;

use quorate::consensus::Consensus;

use crate::workload::history::Moment;

/// How much faster than real time the clock of a raft leader may run: less than a lease's guard allows for.
pub const RATE_PPM_MAX: i64 = 400;

/// Watches the nodes' states as the simulation goes on.
#[derive(Default)]
pub struct Invariants {
    /// What was applied up to an index, as any node showed it first.
    by_index: BTreeMap<u64, Seen>,
    /// The raft leader of each raft term.
    raft_leaders: BTreeMap<u64, usize>,
    pub violations: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    node: usize,
    raft_term: u64,
    digest: String,
    log_time: u64,
    fencing_token: u64,
}

impl Invariants {
    /// How many reigns were seen.
    pub fn reigns(&self) -> usize {
        self.raft_leaders.len()
    }

    pub fn look_at(&mut self, node: usize, consensus: &Consensus, now: Moment) {
        let status = consensus.status();
        if status.role == "raft_leader" {
            let first = *self.raft_leaders.entry(status.raft_term).or_insert(node);
            if first != node {
                self.violated(format!("n{} and n{} lead in raft term {}", first + 1, node + 1, status.raft_term));
            }
        }
        let position = consensus.replica().position();
        let Some(applied) = position.applied else { return };
        let seen = Seen {
            node,
            raft_term: applied.leader_id.term,
            digest: position.digest.to_string(),
            log_time: position.counters.log_time.0,
            fencing_token: position.counters.last_fencing_token,
        };
        if let Some(first) = self.by_index.get(&applied.index) {
            if (first.raft_term, &first.digest) != (seen.raft_term, &seen.digest) {
                self.violated(format!("at index {} {first:?} and {seen:?}", applied.index));
            }
            return;
        }
        let before = self.by_index.range(..applied.index).next_back();
        let after = self.by_index.range(applied.index..).next();
        let grows = |earlier: &Seen, later: &Seen| {
            earlier.raft_term <= later.raft_term
                && earlier.log_time <= later.log_time
                && earlier.fencing_token <= later.fencing_token
        };
        if before.is_some_and(|(_, before)| !grows(before, &seen))
            || after.is_some_and(|(_, after)| !grows(&seen, after))
        {
            self.violated(format!("something went back: {before:?}, {seen:?} at {}, {after:?}", applied.index));
        }
        let log_time_max = now / 1_000 + now / 1_000 * RATE_PPM_MAX.unsigned_abs() / 1_000_000 + 10;
        if seen.log_time > log_time_max {
            self.violated(format!("log time is ahead of real time, {log_time_max}: {seen:?}"));
        }
        self.by_index.insert(applied.index, seen);
    }

    fn violated(&mut self, what: String) {
        // The first of a kind tells most; what follows from it would fill the screen.
        if self.violations.len() < 10 {
            self.violations.push(what);
        }
    }
}
