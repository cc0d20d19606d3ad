//! Checks a history. Each promise has a file, with a history that it must reject and one that it must accept.
//!
//! Statuses are checked for linearizability room by room. Terms order the grants, so no search is needed: a room
//! goes from *held under T* to *vacant* or to *held under a higher T*, and never back; two answers contradict each
//! other only if one ended before the other began, or if both ended one lease. A property test compares that with a
//! search through all orders (`search`) on random answers. Not checked: the content of the log itself (the state digests
//! stand for it), metadata, and `consistency=local` reads beyond their terms. An unknown outcome is open for ever: it may
//! explain what is seen later, and never contradicts anything.

mod answers;
mod convergence;
mod early;
mod exclusion;
mod keys;
mod liveness;
#[cfg(test)]
mod made;
mod minority;
#[cfg(test)]
mod search;
mod secrets;
mod statuses;
mod terms;
mod watches;

use std::fmt;

use super::history::{Answer, Asked, Attempt, Fault, GUARD, History, LEASE, Moment, SECOND, Seen};

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: &'static str,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

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

/// Whether a quorum has answered.
pub fn is_served(attempt: &Attempt) -> bool {
    attempt.asked != Asked::LocalRead && matches!(attempt.answer, Answer::Ok(_) | Answer::NotHolder)
}

/// The longest time between two moments in which no answer of a kind came from any node.
pub fn longest_outage(history: &History, is_one: fn(&Attempt) -> bool, from: Moment, to: Moment) -> Moment {
    let answers = history.attempts.iter().filter(|attempt| is_one(attempt)).filter_map(|attempt| attempt.t1);
    let mut moments: Vec<Moment> = answers.filter(|t1| (from..to).contains(t1)).chain([from, to]).collect();
    moments.sort_unstable();
    moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}

/// A linearizable answer about who holds a room.
#[derive(Debug, Clone, Copy)]
struct Observation<'a> {
    room: usize,
    t0: Moment,
    t1: Moment,
    says: Says<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says<'a> {
    Held {
        holder: &'a str,
        term: u64,
    },
    Vacant,
    /// The lease of this term has ended.
    Over {
        term: u64,
    },
    /// The lease of this term was held until this moment, and ended then.
    Resigned {
        term: u64,
    },
}

fn observations(history: &History) -> impl Iterator<Item = Observation<'_>> {
    history.attempts.iter().filter(|attempt| attempt.asked != Asked::LocalRead).filter_map(|attempt| {
        let says = match (&attempt.answer, attempt.asked) {
            (Answer::Ok(Seen::Won { term, .. }), _) => Says::Held { holder: &attempt.holder, term: *term },
            (Answer::Ok(Seen::Held { holder, term }), _) => Says::Held { holder, term: *term },
            (Answer::Ok(Seen::Vacant), _) => Says::Vacant,
            (Answer::Ok(Seen::Resigned { term }), _) => Says::Resigned { term: *term },
            (Answer::NotHolder, Asked::Renew { term } | Asked::Resign { term }) => Says::Over { term },
            _ => return None,
        };
        Some(Observation { room: attempt.room, t0: attempt.t0, t1: attempt.t1?, says })
    })
}

/// Anything that shows a lease, however stale: room, holder, term, and when it had been shown.
fn sightings(history: &History) -> impl Iterator<Item = (usize, &str, u64, Moment)> {
    let local = history.attempts.iter().filter(|attempt| attempt.asked == Asked::LocalRead);
    let local = local.filter_map(|attempt| match &attempt.answer {
        Answer::Ok(Seen::Held { holder, term }) => Some((attempt.room, holder.as_str(), *term, attempt.t1?)),
        _ => None,
    });
    let events = history.events.iter().filter_map(|event| {
        let (holder, term) = event.held.as_ref()?;
        Some((event.room, holder.as_str(), *term, event.at))
    });
    let answers = observations(history).filter_map(|observation| match observation.says {
        Says::Held { holder, term } => Some((observation.room, holder, term, observation.t1)),
        _ => None,
    });
    answers.chain(local).chain(events)
}

/// Nodes that are ready may have a raft election ahead of them: what was paused or cut off has just come back.
const SETTLING: Moment = SECOND;

/// What of the time between two moments a fault or its consequences took.
fn disturbed(fault: &Fault, from: Moment, to: Moment) -> Option<(Moment, Moment)> {
    let over = fault.healed.unwrap_or(to).max(fault.undone) + SETTLING;
    let (from, to) = (fault.from.max(from), over.min(to));
    (from <= to).then_some((from, to))
}

/// Whether nothing that was done to the nodes can be the cause of what happened between two moments.
fn is_calm(history: &History, from: Moment, to: Moment) -> bool {
    history.faults.iter().all(|fault| disturbed(fault, from, to).is_none())
}

/// What is known of one lease from its holder's answers.
#[derive(Debug, Clone)]
struct Lease<'a> {
    room: usize,
    holder: &'a str,
    term: u64,
    /// When its holder first knew.
    won_at: Moment,
    /// It lasts at least until then, unless it is resigned.
    lasts_until: Moment,
    /// The attempt that made it so long was sent then, so its duration cannot have begun before.
    counts_from: Moment,
    /// Its duration had begun by then, so it is over in time if it is over then, if nothing is done to the nodes.
    over_by: Moment,
    /// The first moment at which it may have been resigned.
    resigned_from: Option<Moment>,
}

fn leases(history: &History) -> Vec<Lease<'_>> {
    let mut leases = std::collections::BTreeMap::<u64, Lease>::new();
    for attempt in &history.attempts {
        if let (Answer::Ok(Seen::Won { term, valid_for }), Some(t1)) = (&attempt.answer, attempt.t1) {
            let until = attempt.t0 + valid_for;
            let lease = leases.entry(*term).or_insert(Lease {
                room: attempt.room,
                holder: &attempt.holder,
                term: *term,
                won_at: t1,
                lasts_until: until,
                counts_from: attempt.t0,
                over_by: 0,
                resigned_from: None,
            });
            lease.won_at = lease.won_at.min(t1);
            lease.lasts_until = lease.lasts_until.max(until);
            // The latest answer may be of an earlier time, as one that waited for the room is.
            if t1 + valid_for + GUARD > lease.over_by {
                lease.over_by = t1 + valid_for + GUARD;
                lease.counts_from = attempt.t0;
            }
        }
    }
    for attempt in &history.attempts {
        match attempt.asked {
            Asked::Resign { term } if matches!(attempt.answer, Answer::Ok(_) | Answer::Unknown) => {
                if let Some(lease) = leases.get_mut(&term) {
                    lease.resigned_from = Some(lease.resigned_from.unwrap_or(Moment::MAX).min(attempt.t0));
                }
            }
            Asked::Renew { term } if attempt.answer == Answer::Unknown => {
                // It may have made the lease longer than its holder knows, when that was nearly over.
                if let Some(lease) = leases.get_mut(&term) {
                    lease.over_by += LEASE + GUARD;
                }
            }
            _ => {}
        }
    }
    leases.into_values().collect()
}
