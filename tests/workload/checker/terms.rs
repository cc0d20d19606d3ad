//! A term belongs to one holder in one room. It is higher than every term that was known before its holder campaigned.

use std::collections::HashMap;

use super::super::history::{Answer, Asked, History, Moment, Seen};
use super::observations::sightings;
use super::violation::Violation;

pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut violation = |what: String| violations.push(Violation { promise: "terms", what });
    let mut owners = HashMap::new();
    let mut known = Vec::new();
    for (room, holder, term, at) in sightings(history) {
        let (first_room, first_holder) = *owners.entry(term).or_insert((room, holder));
        if (first_room, first_holder) != (room, holder) {
            violation(format!("{term} is {holder}'s in room {room} and {first_holder}'s in room {first_room}"));
        }
        known.push((at, term));
    }
    for attempt in &history.attempts {
        if let (Asked::Renew { term }, Answer::Ok(Seen::Won { term: answered, .. })) = (attempt.asked, &attempt.answer)
            && term != *answered
        {
            violation(format!("a renewal of {term} was answered with {answered}"));
        }
        if let (Asked::Resign { term }, Answer::Ok(Seen::Resigned { term: answered })) =
            (attempt.asked, &attempt.answer)
            && term != *answered
        {
            violation(format!("a resignation from {term} was answered with {answered}"));
        }
    }

    // A first attempt with an unknown outcome may have won. So the moment at which the key was first sent counts.
    let mut first_sent = HashMap::<(usize, &str), Moment>::new();
    for attempt in history.attempts.iter().filter(|attempt| attempt.asked == Asked::Campaign) {
        let first = first_sent.entry((attempt.room, &attempt.holder)).or_insert(attempt.sent_at);
        *first = attempt.sent_at.min(*first);
    }
    let mut granted: Vec<(Moment, u64)> = Vec::new();
    for (term, (room, holder)) in &owners {
        if let Some(sent) = first_sent.get(&(*room, *holder)) {
            granted.push((*sent, *term));
        }
    }
    known.sort_unstable();
    granted.sort_unstable();
    let (mut seen, mut highest) = (known.iter().peekable(), 0);
    for (sent, term) in granted {
        while let Some((_, known)) = seen.next_if(|(at, _)| *at < sent) {
            highest = highest.max(*known);
        }
        if term <= highest {
            violation(format!("{term} was granted to a campaign sent at {sent} us, when {highest} was known"));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn a_term_that_is_not_above_one_known_before_is_rejected() {
        let history = Made::new().won("a", 6, 0, 10).in_room(1).won("b", 5, 11, 20).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_lower_term_is_accepted_if_its_key_was_sent_before_the_higher_term_was_known() {
        let history = Made::new().won("a", 6, 0, 10).in_room(1).campaign_unknown("b", 5).won("b", 5, 11, 20).done();
        assert_eq!(check(&history), []);
    }

    #[test]
    fn a_term_of_two_holders_is_rejected() {
        let history = Made::new().won("a", 6, 0, 10).in_room(1).won("b", 6, 5, 20).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_term_of_two_holders_is_rejected_even_if_one_was_only_read_locally() {
        let history = Made::new().won("a", 6, 0, 10).read_locally("b", 6, 20, 30).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_renewal_that_changes_the_term_is_rejected_and_one_that_keeps_it_accepted() {
        let history = Made::new().won("a", 6, 0, 10).renewed("a", 6, 7, 20, 30).done();
        assert_eq!(check(&history).len(), 1);
        let history = Made::new().won("a", 6, 0, 10).renewed("a", 6, 6, 20, 30).done();
        assert_eq!(check(&history), []);
    }
}
