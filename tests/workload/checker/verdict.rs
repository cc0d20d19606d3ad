//! Runs all checks on a history, and sums up what it shows.

use super::super::history::{Answer, Asked, History, Moment};
use super::outages::{is_served, longest_outage};
use super::violation::Violation;
use super::{answers, convergence, early, exclusion, keys, liveness, minority, secrets, statuses, terms, watches};

/// The result of all checks.
#[derive(Debug, Default)]
pub struct Verdict {
    pub violations: Vec<Violation>,
    /// How many requests needed a quorum, and how many of them have an unknown outcome.
    pub operations: usize,
    pub unknown: usize,
    /// The shortest time in microseconds from the moment at which one holder stopped acting to the moment at which the
    /// next one began. Negative if two acted at the same time.
    pub smallest_gap: Option<i64>,
    /// How late leases ended, in ascending order. Counted from the latest moment at which a lease ends without a fault,
    /// to the first sign that somebody else had the room.
    pub late: Vec<Moment>,
    /// How many holders wanted to go on, and could not renew in time.
    pub ran_out: usize,
    /// The longest time without an answer that needs a quorum.
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
    let answered =
        history.attempts.iter().filter(|attempt| is_served(attempt)).filter_map(|attempt| attempt.answered_at);
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
