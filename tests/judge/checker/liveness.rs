//! What was broken works again in time, and no room stays with a holder that has gone.

use std::collections::BTreeMap;

use super::{Says, Violation, leases, observations};
use crate::history::{History, MILLI, Moment, SECOND};

/// How late a lease may be given to the next contender by nodes that nothing is done to: they ask at most every 1.2
/// s, and all of this runs on one busy machine.
const LATE_MAX: Moment = 2_500 * MILLI;
/// What a fault may cost in log time beyond its own length: up to a second since the last tick, and raft elections.
const LOST_MAX: Moment = 3 * SECOND;
/// A raft election and a restart after the end of a fault, during which it still counts.
const AFTERMATH: Moment = 5 * SECOND;

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

    // When each room was first seen to have passed to a term.
    let mut passed = BTreeMap::<(usize, u64), Moment>::new();
    let held = observations(history).filter_map(|observation| match observation.says {
        Says::Held { term, .. } => Some((observation.room, term, observation.t1)),
        _ => None,
    });
    for (room, term, at) in held {
        let first = passed.entry((room, term)).or_insert(at);
        *first = at.min(*first);
    }
    let mut late = Vec::new();
    for lease in leases(history) {
        if lease.resigned_from.is_some() || lease.maybe_longer {
            continue;
        }
        let next = passed.range((lease.room, lease.term + 1)..=(lease.room, u64::MAX)).map(|(_, at)| *at).next();
        let Some(at) = next else { continue };
        let lateness = at.saturating_sub(lease.lasts_until);
        late.push(lateness);
        let allowed: Moment = history
            .faults
            .iter()
            .filter(|fault| fault.from < at && fault.undone + AFTERMATH > lease.won_at)
            .map(|fault| fault.healed.unwrap_or(at).max(fault.undone) - fault.from + LOST_MAX)
            .sum();
        if lateness > LATE_MAX + allowed {
            violation(format!("{lateness} us late, of {} us allowed: {lease:?}", LATE_MAX + allowed));
        }
    }
    late.sort_unstable();
    (violations, late)
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
        let history = Made::new().won("a", 5, 0, 10).won("b", 6, 9_000, 9_010).done();
        let (violations, late) = check(&history);
        assert_eq!((violations.len(), late), (1, vec![4_010 * MILLI]));
    }

    #[test]
    fn a_room_that_passes_on_in_time_or_after_a_fault_is_accepted() {
        let history = Made::new().won("a", 5, 0, 10).won("b", 6, 5_000, 5_100).done();
        assert_eq!(check(&history), (vec![], vec![100 * MILLI]));
        let history = Made::new().won("a", 5, 0, 10).won("b", 6, 9_000, 9_010).fault(100, 2_000, Some(2_500), &[]);
        assert_eq!(check(&history.done()).0, []);
    }
}
