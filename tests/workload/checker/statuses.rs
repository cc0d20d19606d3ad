//! Linearizable: the answers about a room go forward in real time, and never back. So no acknowledged grant or
//! resignation is forgotten.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::history::{History, Moment};
use super::observations::{Observation, Says, observations};
use super::violation::Violation;

pub fn check(history: &History) -> Vec<Violation> {
    let mut rooms = BTreeMap::<usize, Vec<Observation>>::new();
    for observation in observations(history) {
        rooms.entry(observation.room).or_default().push(observation);
    }
    rooms.into_values().flat_map(check_room).collect()
}

fn check_room(mut observed: Vec<Observation>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut violation = |what: String| violations.push(Violation { promise: "linearizable", what });
    // Terms that were certainly granted when an answer came.
    let mut granted: Vec<(Moment, u64)> = Vec::new();
    // Terms whose lease lasted at some moment of an attempt, with the beginning of the attempt.
    let mut occupied: Vec<(Moment, u64)> = Vec::new();
    let mut last_occupied = HashMap::<u64, Moment>::new();
    let mut resigned = HashSet::new();
    for observation in &observed {
        if let Says::Occupied { term, .. } | Says::Resigned { term } | Says::Over { term } = observation.says {
            granted.push((observation.answered_at, term));
        }
        if let Says::Occupied { term, .. } | Says::Resigned { term } = observation.says {
            occupied.push((observation.sent_at, term));
            let last = last_occupied.entry(term).or_insert(observation.sent_at);
            *last = observation.sent_at.max(*last);
        }
        if let Says::Resigned { term } = observation.says
            && !resigned.insert(term)
        {
            violation(format!("{term} was resigned twice: {observation:?}"));
        }
    }
    // For each moment: the lowest term whose lease was seen by an attempt that was sent later.
    occupied.sort_unstable();
    for place in (1..occupied.len()).rev() {
        occupied[place - 1].1 = occupied[place - 1].1.min(occupied[place].1);
    }
    let lowest_after = |moment: Moment| {
        occupied.get(occupied.partition_point(|(sent_at, _)| *sent_at <= moment)).map(|(_, term)| *term)
    };

    granted.sort_unstable();
    observed.sort_unstable_by_key(|observation| observation.sent_at);
    let (mut granted, mut highest) = (granted.iter().peekable(), None);
    for observation in observed {
        while let Some((_, term)) = granted.next_if(|(answered_at, _)| *answered_at < observation.sent_at) {
            highest = highest.max(Some(*term));
        }
        match observation.says {
            Says::Occupied { term, .. } | Says::Resigned { term } if Some(term) < highest => {
                violation(format!("after {highest:?} had been granted, {observation:?}"));
            }
            Says::Vacant
                if highest.is_some()
                    && lowest_after(observation.answered_at).is_some_and(|next| Some(next) <= highest) =>
            {
                violation(format!("vacant in the middle of the lease {highest:?}: {observation:?}"));
            }
            Says::Over { term } | Says::Resigned { term }
                if last_occupied.get(&term).is_some_and(|last| *last > observation.answered_at) =>
            {
                violation(format!("{term} was shown to a client that asked after {observation:?}"));
            }
            _ => {}
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::made::Made;
    use super::super::search::is_linearizable;
    use super::*;

    fn observation() -> impl Strategy<Value = Observation<'static>> {
        (0..14_u64, 0..5_u64, 1..4_u64, 0..4).prop_map(|(sent_at, length, term, kind)| {
            let says = match kind {
                0 => Says::Vacant,
                1 => Says::Over { term },
                2 => Says::Resigned { term },
                _ => Says::Occupied { holder: "", term },
            };
            Observation { room: 0, sent_at, answered_at: sent_at + length, says }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_check_agrees_with_a_search_through_all_orders(
            observed in prop::collection::vec(observation(), 1..7)
        ) {
            prop_assert_eq!(check_room(observed.clone()).is_empty(), is_linearizable(&observed));
        }
    }

    #[test]
    fn a_resignation_that_is_acknowledged_after_its_lease_had_ended_is_rejected() {
        let history = Made::new().won("a", 5, 0, 10).read("b", 6, 20, 30).resigned("a", 5, 31, 40).done();
        assert_eq!(check(&history).len(), 1);
        let history = Made::new().won("a", 5, 0, 10).resigned("a", 5, 20, 30).resigned("a", 5, 25, 40).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_resignation_during_which_the_room_passes_on_is_accepted() {
        let history = Made::new().won("a", 5, 0, 10).read("b", 6, 20, 30).resigned("a", 5, 15, 40).done();
        assert_eq!(check(&history), []);
    }

    #[test]
    fn an_answer_that_goes_back_to_an_earlier_lease_is_rejected() {
        let history = Made::new().read("b", 6, 0, 10).read("a", 5, 11, 20).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn an_answer_that_goes_back_is_accepted_if_the_two_requests_overlap() {
        let history = Made::new().read("b", 6, 0, 12).read("a", 5, 11, 20).done();
        assert_eq!(check(&history), []);
    }

    #[test]
    fn a_vacancy_in_the_middle_of_a_lease_is_rejected() {
        let history = Made::new().read("a", 5, 0, 10).read_vacant(11, 20).read("a", 5, 21, 30).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_vacancy_between_two_leases_is_accepted() {
        let history = Made::new().read("a", 5, 0, 10).read_vacant(11, 20).read("b", 6, 21, 30).done();
        assert_eq!(check(&history), []);
    }

    #[test]
    fn a_lease_that_is_shown_after_its_resignation_was_acknowledged_is_rejected() {
        let made = || Made::new().won("a", 5, 0, 10).resigned("a", 5, 20, 30);
        assert_eq!(check(&made().read("a", 5, 31, 40).done()).len(), 1);
        assert_eq!(check(&made().renewed("a", 5, 5, 31, 40).done()).len(), 1);
    }

    #[test]
    fn a_lease_that_is_shown_while_its_resignation_is_in_flight_or_unknown_is_accepted() {
        assert_eq!(check(&Made::new().won("a", 5, 0, 10).resigned("a", 5, 20, 30).read("a", 5, 29, 40).done()), []);
        assert_eq!(check(&Made::new().won("a", 5, 0, 10).resign_unknown("a", 5, 20).read("a", 5, 90, 99).done()), []);
    }

    #[test]
    fn an_acknowledged_grant_that_was_forgotten_is_rejected() {
        // A node that has lost its disk shows an older lease.
        let history = Made::new().won("a", 5, 0, 10).won("b", 6, 20, 30).read("a", 5, 40, 50).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_lease_that_comes_back_after_its_holder_was_told_that_it_is_over_is_rejected() {
        let history = Made::new().won("a", 5, 0, 10).not_holder("a", 5, 20, 30).read("a", 5, 40, 50).done();
        assert_eq!(check(&history).len(), 1);
    }
}
