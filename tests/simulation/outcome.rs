//! The result of one run.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::workload::amounts::Amounts;
use crate::workload::checker::Verdict;
use crate::workload::history::{History, MILLI, Moment};

/// What one run has shown.
pub struct Outcome {
    pub seed: u64,
    /// How long the run took, in simulated time.
    pub simulated: Moment,
    /// How many faults of each kind were injected.
    pub faults: BTreeMap<&'static str, usize>,
    /// How many raft terms had a raft leader.
    pub reigns: usize,
    /// How many processes were started.
    pub starts: u64,
    /// How many snapshots were sent successfully.
    pub snapshots_sent: u64,
    pub verdict: Verdict,
    /// Broken promises, in the history of the clients and in the states of the nodes.
    pub violations: Vec<String>,
    /// What the clients saw, and which faults were injected.
    pub history: History,
    /// A digest of the history. The same seed must give the same digest.
    pub trace: String,
}

impl Outcome {
    /// One line of JSON, which `scripts/simulate` adds up.
    pub fn line(&self) -> String {
        let verdict = &self.verdict;
        let late = |percent| verdict.late_percentile(percent).unwrap_or(0) / MILLI;
        serde_json::json!({
            "seed": self.seed,
            "trace": self.trace,
            "simulated_ms": self.simulated / MILLI,
            "operations": verdict.operations,
            "unknown": verdict.unknown,
            "ran_out": verdict.ran_out,
            "reigns": self.reigns,
            "starts": self.starts,
            "snapshots_sent": self.snapshots_sent,
            "violations": self.violations.len(),
            "late_ms": [late(50), late(99), late(100)],
            "outage_ms": verdict.longest_outage / MILLI,
            "gap_us": verdict.smallest_gap,
            "faults": self.faults,
        })
        .to_string()
    }
}

/// Why too little happened to prove anything, if so.
pub fn too_weak(history: &History, verdict: &Verdict) -> Option<String> {
    let Amounts { won, renewed, resigned, events, samples } = Amounts::of(history);
    // With slow contenders it may be that no holder keeps a room for long enough to renew.
    let amounts = [won, renewed + resigned, events, samples, history.faults.len()];
    let too_few = amounts.contains(&0) || verdict.operations < 100;
    let Verdict { operations, unknown, .. } = verdict;
    (too_few || unknown * 4 > *operations).then(|| {
        format!(
            "won, renewed or resigned, events, samples, faults {amounts:?}, {operations} operations, {unknown} unknown"
        )
    })
}

/// A digest of everything in the history.
pub fn trace(history: &History) -> String {
    let mut hash = Sha256::new();
    let mut add = |what: String| hash.update(what);
    history.attempts.iter().for_each(|attempt| add(format!("{attempt:?}")));
    history.stops.iter().for_each(|stop| add(format!("{stop:?}")));
    history.events.iter().for_each(|event| add(format!("{event:?}")));
    history.samples.iter().for_each(|sample| add(format!("{sample:?}")));
    history.faults.iter().for_each(|fault| add(format!("{fault:?}")));
    add(format!("{:?}", history.rest));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
