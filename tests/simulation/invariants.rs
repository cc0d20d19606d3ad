//! What must be true of the nodes' own states at every moment, whether or not clients can see it.

use std::collections::BTreeMap;

use quorate::consensus::Consensus;

use crate::workload::history::Moment;

/// How much faster than real time a raft leader's clock may run, in millionths: less than the guard of a lease covers.
pub const RATE_PPM_MAX: i64 = 400;

/// Compares the nodes' states as the simulation goes on.
#[derive(Default)]
pub struct Invariants {
    /// The state after each applied index, as the first node had it.
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
    /// How many raft terms with a raft leader were seen.
    pub fn reigns(&self) -> usize {
        self.raft_leaders.len()
    }

    /// Compares the state of one node with all states seen so far.
    pub fn look_at(&mut self, node: usize, consensus: &Consensus, now: Moment) {
        let status = consensus.status();
        if status.role == "raft_leader" {
            let first = *self.raft_leaders.entry(status.raft_term).or_insert(node);
            if first != node {
                self.violated(format!(
                    "n{} and n{} are both raft leader in raft term {}",
                    first + 1,
                    node + 1,
                    status.raft_term
                ));
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
                self.violated(format!("two states at applied index {}: {first:?} and {seen:?}", applied.index));
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
            self.violated(format!(
                "a raft term, log time or fencing token fell: {before:?}, {seen:?} at {}, {after:?}",
                applied.index
            ));
        }
        let log_time_max = now / 1_000 + now / 1_000 * RATE_PPM_MAX.unsigned_abs() / 1_000_000 + 10;
        if seen.log_time > log_time_max {
            self.violated(format!("log time is ahead of real time, {log_time_max}: {seen:?}"));
        }
        self.by_index.insert(applied.index, seen);
    }

    fn violated(&mut self, what: String) {
        // The first ones say most. Those that follow from them would only fill the screen.
        if self.violations.len() < 10 {
            self.violations.push(what);
        }
    }
}
