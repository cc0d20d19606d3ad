//! What was broken works again in time, and no room stays with a holder that has gone.

use std::collections::{BTreeMap, HashMap};

use super::{Says, Violation, disturbed, leases, observations};
use crate::history::{History, MILLI, Moment, SECOND};

/// A lease that nobody may hold any more is shown no longer than this: its end is put into the log as soon as it is
/// due, on one busy machine.
const SHOWN_MAX: Moment = SECOND;
/// It is somebody else's by then: contenders ask at most every 1.2 s, and now and then in vain.
const PASSED_MAX: Moment = 2_500 * MILLI;
/// What a fault may cost in log time before it began: the raft leader stamps at least once a second.
const UNSTAMPED_MAX: Moment = SECOND;
/// Also gives by how much leases ended late, sorted.
pub fn check(history: &History) -> (Vec<Violation>, Vec<Moment>) {
    let mut violations = Vec::new();
    let mut violation = |what: String| violations.push(Violation { promise: "liveness", what });
    for fault in &history.faults {
        if fault.healed.is_none() {
            violation(format!("not healed in time: {fault:?}"));
        }
    }
    for what in &history.rest.not_served {
        violation(what.clone());
    }

    // When each room was first seen to have passed to a term, and when that was last shown to one who asked.
    let mut passed = BTreeMap::<(usize, u64), Moment>::new();
    let mut shown = HashMap::<u64, Moment>::new();
    for observation in observations(history) {
        let Says::Held { term, .. } = observation.says else { continue };
        let first = passed.entry((observation.room, term)).or_insert(observation.t1);
        *first = observation.t1.min(*first);
        let last = shown.entry(term).or_insert(observation.t0);
        *last = observation.t0.max(*last);
    }
    let mut late = Vec::new();
    for lease in leases(history) {
        if lease.resigned_from.is_some() || lease.maybe_longer {
            continue;
        }
        let mut judge = |at: Moment, most: Moment, what: &str| {
            let lateness = at.saturating_sub(lease.over_by);
            let allowed = most + lost_at_most(history, lease.counts_from, at);
            if lateness > allowed {
                violation(format!("{what} {lateness} us late, of {allowed} us allowed: {lease:?}"));
            }
            lateness
        };
        if let Some(at) = shown.get(&lease.term) {
            judge(*at, SHOWN_MAX, "shown");
        }
        let next = passed.range((lease.room, lease.term + 1)..=(lease.room, u64::MAX)).map(|(_, at)| *at).next();
        late.extend(next.map(|at| judge(at, PASSED_MAX, "passed on")));
    }
    late.sort_unstable();
    (violations, late)
}

/// How much log time the faults between two moments may have cost: as long as they and their healing lasted, and what
/// had not been stamped before.
fn lost_at_most(history: &History, from: Moment, to: Moment) -> Moment {
    let each = history.faults.iter().map(|fault| disturbed(fault, from, to));
    each.map(|length| if length > 0 { length + UNSTAMPED_MAX } else { 0 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::made::Made;

    #[test]
    fn a_fault_that_does_not_heal_is_rejected_and_one_that_does_accepted() {
        assert_eq!(check(&Made::new().fault(0, 10, None, &[]).done()).0.len(), 1);
        assert_eq!(check(&Made::new().fault(0, 10, Some(20), &[]).done()).0, []);
    }

    #[test]
    fn a_node_that_does_not_serve_at_rest_is_rejected() {
        assert_eq!(check(&Made::new().rest(|rest| rest.not_served = vec!["n1".into()]).done()).0.len(), 1);
    }

    #[test]
    fn a_room_that_stays_with_a_holder_that_has_gone_is_rejected() {
        // 5 s from the answer at 10 ms, and the guard.
        let history = Made::new().won("a", 5, 0, 10).won("b", 6, 9_000, 9_010).done();
        let (violations, late) = check(&history);
        assert_eq!((violations.len(), late), (1, vec![3_985 * MILLI]));
    }

    #[test]
    fn a_lease_that_is_shown_long_after_its_end_is_rejected_whenever_somebody_asks_for_the_room() {
        let history = Made::new().won("a", 5, 0, 10).read("a", 5, 6_026, 6_030).done();
        assert_eq!(check(&history).0.len(), 1);
        let history = Made::new().won("a", 5, 0, 10).read("a", 5, 6_025, 6_030).done();
        assert_eq!(check(&history).0, []);
    }

    #[test]
    fn a_room_that_passes_on_in_time_is_accepted() {
        let history = Made::new().won("a", 5, 0, 10).won("b", 6, 5_000, 5_100).done();
        assert_eq!(check(&history), (vec![], vec![75 * MILLI]));
        let history = Made::new().won("waited", 5, 0, 9_000).won("b", 6, 14_000, 14_100).done();
        assert_eq!(check(&history), (vec![], vec![85 * MILLI]));
    }

    #[test]
    fn a_room_may_stay_as_much_longer_as_faults_can_have_cost_and_no_more() {
        // From 100 to 2,500 ms, 1 s before and 1 s after, and 2.5 s until somebody asks.
        let late = |at: u64| {
            let history = Made::new().won("a", 5, 0, 10).won("b", 6, at - 10, at).fault(100, 2_000, Some(2_500), &[]);
            check(&history.done()).0.len()
        };
        assert_eq!((late(5_025 + 4_400 + 2_500), late(5_025 + 4_401 + 2_500)), (0, 1));
        let elsewhere = Made::new().won("a", 5, 0, 10).won("b", 6, 9_000, 9_010).fault(9_100, 9_200, Some(9_300), &[]);
        assert_eq!(check(&elsewhere.done()).0.len(), 1, "a fault after it is no excuse");
    }
}
