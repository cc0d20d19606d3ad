//! A lease does not end before its holder must have stopped, unless the holder resigns.

use std::collections::HashMap;

use super::super::history::{Answer, GUARD, History, LEASE, Moment, Seen, WatchEvent};
use super::leases::{Lease, leases};
use super::observations::{Says, observations};
use super::violation::Violation;

pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    let observed: Vec<_> = observations(history).collect();
    let events = with_term_before(history);
    for lease in leases(history) {
        let ended = |at: Moment| at < lease.lasts_until && lease.resigned_from.is_none_or(|from| at < from);
        let shown = observed.iter().filter(|observation| observation.room == lease.room).find(|observation| {
            let contradicts = match observation.says {
                Says::Occupied { term, .. } => term > lease.term,
                Says::Vacant => observation.sent_at > lease.won_at,
                Says::Over { term } | Says::Resigned { term } => term == lease.term,
            };
            contradicts && ended(observation.answered_at)
        });
        let event_shown = events.iter().filter(|(event, _)| event.room == lease.room).find(|(event, before)| {
            let contradicts = match &event.holder {
                Some((_, term)) => *term > lease.term,
                None => *before == Some(lease.term),
            };
            contradicts && ended(event.at)
        });
        // One violation of each kind is enough: many more follow from the same mistake.
        violations.extend(shown.map(|observation| early(&lease, observation, observation.answered_at)));
        violations.extend(event_shown.map(|(event, _)| early(&lease, event, event.at)));
    }
    for attempt in &history.attempts {
        if let Answer::Ok(Seen::Won { valid_for, .. }) = attempt.answer
            && valid_for > LEASE
        {
            let what = format!("an answer promises {valid_for} us of {LEASE}: {attempt:?}");
            violations.push(Violation { promise: "never early", what });
        }
        if matches!(attempt.answer, Answer::Ok(_))
            && let Some(retry_after) = attempt.retry_after
            && retry_after > LEASE + GUARD
        {
            let what = format!("an absurd retry_after of {retry_after} us: {attempt:?}");
            violations.push(Violation { promise: "never early", what });
        }
    }
    violations
}

/// Each event with the term that its stream showed before. A node may be behind, so an event that shows the room as
/// vacant is about the lease that the same stream showed last.
fn with_term_before(history: &History) -> Vec<(&WatchEvent, Option<u64>)> {
    let mut last = HashMap::new();
    let mut pairs = Vec::new();
    for event in &history.events {
        let shown = event.holder.as_ref().map(|(_, term)| *term);
        pairs.push((event, last.insert(event.stream, shown).flatten()));
    }
    pairs
}

fn early(lease: &Lease, what: &dyn std::fmt::Debug, at: Moment) -> Violation {
    let left = lease.lasts_until - at;
    Violation { promise: "never early", what: format!("{left} us before its end, {lease:?} met {what:?} at {at}") }
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn every_sign_that_a_lease_has_ended_early_is_rejected() {
        let won = || Made::new().won("a", 5, 0, 10);
        assert_eq!(check(&won().won("b", 6, 4_000, 4_999).done()).len(), 1);
        assert_eq!(check(&won().read("b", 6, 4_000, 4_999).done()).len(), 1);
        assert_eq!(check(&won().read_vacant(4_000, 4_999).done()).len(), 1);
        assert_eq!(check(&won().not_holder("a", 5, 4_000, 4_999).done()).len(), 1);
        assert_eq!(check(&won().event(1, 100, Some(("a", 5))).event(1, 4_999, None).done()).len(), 1);
        assert_eq!(check(&won().event(1, 4_999, Some(("b", 6))).done()).len(), 1);
        assert_eq!(check(&won().renewed("a", 5, 5, 3_000, 3_010).read_vacant(7_000, 7_999).done()).len(), 1);
    }

    #[test]
    fn the_same_sign_is_accepted_at_the_end_or_after_a_resignation_that_may_have_been_done() {
        let won = || Made::new().won("a", 5, 0, 10);
        assert_eq!(check(&won().won("b", 6, 4_000, 5_000).done()), []);
        assert_eq!(check(&won().read_vacant(4_000, 5_000).done()), []);
        assert_eq!(check(&won().not_holder("a", 5, 4_000, 5_000).done()), []);
        assert_eq!(check(&won().resign_unknown("a", 5, 100).read_vacant(200, 300).done()), []);
        assert_eq!(check(&won().event(1, 100, None).event(1, 110, Some(("a", 5))).done()), []);
        assert_eq!(check(&won().read_vacant(5, 50).done()), [], "a read that began before the grant was known");
    }

    #[test]
    fn a_resignation_does_not_excuse_the_answer_that_its_own_lease_was_already_over() {
        let mut history = Made::new().won("a", 5, 0, 10).resigned("a", 5, 1_000, 1_010).done();
        assert_eq!(check(&history), []);
        history.attempts[1].answer = Answer::NotHolder;
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn an_absurd_duration_is_rejected() {
        let mut history = Made::new().won("a", 5, 0, 10).done();
        history.attempts[0].answer = Answer::Ok(Seen::Won { term: 5, valid_for: LEASE + 1 });
        assert_eq!(check(&history).len(), 1);
        let mut history = Made::new().read("a", 5, 0, 10).done();
        history.attempts[0].retry_after = Some(LEASE + GUARD + 1);
        assert_eq!(check(&history).len(), 1);
        history.attempts[0].retry_after = Some(LEASE + GUARD);
        assert_eq!(check(&history), []);
    }
}
