//! Linearizable: what is answered about a room goes forward in real time, and never back. So no acknowledged grant
//! or resignation is forgotten.

use std::collections::{BTreeMap, HashMap};

use super::{Observation, Says, Violation, observations};
use crate::history::{History, Moment};

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
    let mut held: Vec<(Moment, Moment, u64)> = Vec::new();
    let mut last_shown = HashMap::<u64, Moment>::new();
    for observation in &observed {
        if let Says::Held { term, .. } = observation.says {
            held.push((observation.t0, observation.t1, term));
            let last = last_shown.entry(term).or_insert(observation.t0);
            *last = observation.t0.max(*last);
        }
    }
    // The lowest term that an attempt sent at or after a moment was told.
    held.sort_unstable();
    let mut lowest_from: Vec<(Moment, u64)> = held.iter().map(|(t0, _, term)| (*t0, *term)).collect();
    for place in (1..lowest_from.len()).rev() {
        lowest_from[place - 1].1 = lowest_from[place - 1].1.min(lowest_from[place].1);
    }
    let lowest_after =
        |moment: Moment| lowest_from.get(lowest_from.partition_point(|(t0, _)| *t0 <= moment)).map(|(_, term)| *term);

    held.sort_unstable_by_key(|(_, t1, _)| *t1);
    observed.sort_unstable_by_key(|observation| observation.t0);
    let (mut answered, mut highest) = (held.iter().peekable(), None);
    for observation in observed {
        while let Some((.., term)) = answered.next_if(|(_, t1, _)| *t1 < observation.t0) {
            highest = highest.max(Some(*term));
        }
        match observation.says {
            Says::Held { term, .. } if Some(term) < highest => {
                violation(format!("after {highest:?} had been shown, {observation:?}"));
            }
            Says::Vacant
                if highest.is_some() && lowest_after(observation.t1).is_some_and(|next| Some(next) <= highest) =>
            {
                violation(format!("vacant between two signs of {highest:?}: {observation:?}"));
            }
            Says::Over { term } if last_shown.get(&term).is_some_and(|last| *last > observation.t1) => {
                violation(format!("{term} was shown to one who asked after {observation:?}"));
            }
            _ => {}
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::made::Made;

    #[test]
    fn an_answer_that_goes_back_to_an_earlier_lease_is_rejected() {
        let history = Made::new().read("b", 6, 0, 10).read("a", 5, 11, 20).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn an_answer_that_goes_back_is_accepted_while_the_two_overlap() {
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
    fn a_lease_that_is_shown_while_its_resignation_is_under_way_or_unknown_is_accepted() {
        assert_eq!(check(&Made::new().won("a", 5, 0, 10).resigned("a", 5, 20, 30).read("a", 5, 29, 40).done()), []);
        assert_eq!(check(&Made::new().won("a", 5, 0, 10).resign_unknown("a", 5, 20).read("a", 5, 90, 99).done()), []);
    }

    #[test]
    fn an_acknowledged_grant_that_was_forgotten_is_rejected() {
        // After a restart from nothing the room shows an older lease.
        let history = Made::new().won("a", 5, 0, 10).won("b", 6, 20, 30).read("a", 5, 40, 50).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_lease_that_comes_back_after_its_holder_was_told_that_it_is_over_is_rejected() {
        let history = Made::new().won("a", 5, 0, 10).not_holder("a", 5, 20, 30).read("a", 5, 40, 50).done();
        assert_eq!(check(&history).len(), 1);
    }
}
