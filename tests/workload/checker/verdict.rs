//! All checks of a history, and what it amounts to.

use super::super::history::{Answer, Asked, History, Moment};
use super::outages::{is_served, longest_outage};
use super::violation::Violation;
use super::{answers, convergence, early, exclusion, keys, liveness, minority, secrets, statuses, terms, watches};

/// What a history amounts to.
#[derive(Debug, Default)]
pub struct Verdict {
    pub violations: Vec<Violation>,
    pub operations: usize,
    pub unknown: usize,
    /// Between the end of one holder's belief and the start of the next one's.
    pub smallest_gap: Option<i64>,
    /// From the latest moment at which a lease should have ended, had nothing been done to the nodes, to the first
    /// sign that somebody else had the room; sorted.
    pub late: Vec<Moment>,
    /// Holders that wanted to go on and could not renew in time.
    pub ran_out: usize,
    /// The longest time in which no linearizable answer began and came.
    pub longest_outage: Moment,
}

impl Verdict {
    pub fn late_percentile(&self, percent: usize) -> Option<Moment> {
        self.late.get((self.late.len().max(1) - 1) * percent / 100).copied()
    }
}

pub fn check(history: &History) -> Verdict {
    let (exclusion, smallest_gap) = exclusion::check(history);
    let (late_violations, late) = liveness::check(history);
    let violations = [
        exclusion,
        terms::check(history),
        early::check(history),
        statuses::check(history),
        keys::check(history),
        watches::check(history),
        convergence::check(history),
        late_violations,
        minority::check(history),
        answers::check(history),
        secrets::check(history),
    ];
    let answered = history.attempts.iter().filter(|attempt| is_served(attempt)).filter_map(|attempt| attempt.t1);
    let (first, last) = (answered.clone().min().unwrap_or(0), answered.max().unwrap_or(0));
    let counted = history.attempts.iter().filter(|attempt| attempt.asked != Asked::LocalRead);
    Verdict {
        violations: violations.concat(),
        operations: counted.clone().count(),
        unknown: counted.filter(|attempt| attempt.answer == Answer::Unknown).count(),
        smallest_gap,
        late,
        ran_out: history.stops.iter().filter(|stop| stop.ran_out).count(),
        longest_outage: longest_outage(history, is_served, first, last),
    }
}
