//! After a fault everything works again in time, and no room stays with a holder that has gone.

use std::collections::{BTreeMap, HashMap};

use super::super::history::{History, MILLI, Moment, SECOND};
use super::calm::disturbed;
use super::leases::leases;
use super::observations::{Says, observations};
use super::violation::Violation;

/// How long after its end a lease may still be shown. The end is proposed as soon as it is due. Enough for a busy
/// machine.
const SHOWN_MAX: Moment = SECOND;
/// How long after its end a room may stay without a new holder. Contenders pause for up to 5.2 s, and each of them may
/// wait for up to 6 s for an answer that will not come.
const PASSED_MAX: Moment = 11_500 * MILLI;
/// How much log time before its beginning a fault may cost. The raft leader stamps at least once a second.
const UNSTAMPED_MAX: Moment = SECOND;

/// Also returns by how much leases ended late, in ascending order.
pub fn check(history: &History) -> (Vec<Violation>, Vec<Moment>) {
    let mut violations = Vec::new();
    let mut violation = |what: String| violations.push(Violation { promise: "liveness", what });
    for fault in &history.faults {
        if fault.healed.is_none() {
            violation(format!("not all nodes served in time after {fault:?}"));
        }
    }
    for what in &history.rest.not_served {
        violation(what.clone());
    }

    // When each term was first shown, and when a request was sent that was last answered with it.
    let mut passed = BTreeMap::<(usize, u64), Moment>::new();
    let mut shown = HashMap::<u64, Moment>::new();
    for observation in observations(history) {
        let Says::Occupied { term, .. } = observation.says else { continue };
        let first = passed.entry((observation.room, term)).or_insert(observation.answered_at);
        *first = observation.answered_at.min(*first);
        let last = shown.entry(term).or_insert(observation.sent_at);
        *last = observation.sent_at.max(*last);
    }
    let mut late = Vec::new();
    for lease in leases(history) {
        let mut check_lateness = |at: Moment, most: Moment, what: &str| {
            let lateness = at.saturating_sub(lease.over_by);
            let allowed = most + lost_at_most(history, lease.counts_from, at);
            if lateness > allowed {
                violation(format!("{what} {lateness} us late, where {allowed} us are allowed: {lease:?}"));
            }
            lateness
        };
        if let Some(at) = shown.get(&lease.term) {
            check_lateness(*at, SHOWN_MAX, "shown");
        }
        let next = passed.range((lease.room, lease.term + 1)..=(lease.room, u64::MAX)).map(|(_, at)| *at).next();
        let next = next.filter(|at| history.rest.from.is_none_or(|rest| *at <= rest));
        let lateness = next.map(|at| check_lateness(at, PASSED_MAX, "passed on"));
        late.extend(lateness.filter(|_| lease.resigned_from.is_none()));
    }
    late.sort_unstable();
    (violations, late)
}

/// How much log time the faults between two moments may have cost: the whole time in which any of them disturbed, and
/// for each fault the time before it that had not been stamped.
fn lost_at_most(history: &History, from: Moment, to: Moment) -> Moment {
    let mut times: Vec<_> = history.faults.iter().filter_map(|fault| disturbed(fault, from, to)).collect();
    times.sort_unstable();
    let (mut lost, mut known_to) = (0, from);
    for (from, to) in times {
        lost += to.saturating_sub(from.max(known_to)) + UNSTAMPED_MAX;
        known_to = known_to.max(to);
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

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
        // The lease is over 5 s after the answer at 10 ms, plus the guard of 15 ms.
        let history = Made::new().won("a", 5, 0, 10).won("b", 6, 16_520, 16_526).done();
        let (violations, late) = check(&history);
        assert_eq!((violations.len(), late), (1, vec![11_501 * MILLI]));
    }

    #[test]
    fn a_lease_that_is_shown_long_after_its_end_is_rejected() {
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
    fn a_room_without_contenders_is_not_late() {
        let history = Made::new().won("a", 5, 0, 10).won("last", 6, 40_000, 40_010);
        assert_eq!(check(&history.rest(|rest| rest.from = Some(20_000 * MILLI)).done()), (vec![], vec![]));
    }

    #[test]
    fn a_room_may_stay_as_much_longer_as_faults_can_have_cost() {
        // The fault costs 4,400 ms: from 100 to 2,500 ms, 1 s before and 1 s after. A new holder may take 11.5 s.
        let late = |at: u64| {
            let history = Made::new().won("a", 5, 0, 10).won("b", 6, at - 10, at).fault(100, 2_000, Some(2_500), &[]);
            check(&history.done()).0.len()
        };
        assert_eq!((late(5_025 + 4_400 + 11_500), late(5_025 + 4_401 + 11_500)), (0, 1));
        let won = || Made::new().won("a", 5, 0, 10);
        let elsewhere = won().won("b", 6, 17_000, 17_010).fault(17_100, 17_200, Some(17_300), &[]);
        assert_eq!(check(&elsewhere.done()).0.len(), 1, "a later fault is no excuse");
        let at_once = won().won("b", 6, 21_900, 21_925).fault(100, 2_000, Some(2_500), &[]);
        let at_once = at_once.fault(200, 2_000, Some(2_500), &[]);
        assert_eq!(check(&at_once.done()).0, [], "each fault may have cost a second before it began");
        let at_once = won().won("b", 6, 22_000, 22_000).fault(100, 2_000, Some(2_500), &[]);
        let at_once = at_once.fault(200, 2_000, Some(2_500), &[]);
        assert_eq!(check(&at_once.done()).0.len(), 1, "but the time in which both lasted counts once");
    }

    #[test]
    fn an_unknown_renewal_may_make_a_lease_last_longer_and_an_unknown_resignation_may_not() {
        let shown = |made: Made, at: u64| check(&made.read("a", 5, at, at + 1).done()).0.len();
        let renewing = || Made::new().won("a", 5, 0, 10).renew_unknown("a", 5, 1_000);
        assert_eq!((shown(renewing(), 11_040), shown(renewing(), 11_041)), (0, 1));
        let resigning = || Made::new().won("a", 5, 0, 10).resign_unknown("a", 5, 1_000);
        assert_eq!((shown(resigning(), 6_025), shown(resigning(), 6_026)), (0, 1));
    }
}
