//! Exactly once: one key wins one lease, and only contenders that have campaigned hold a room.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::history::{Answer, Asked, History, LEASE, Moment, Seen};
use super::observations::sightings;
use super::violation::Violation;

/// The campaigns with one key.
#[derive(Debug, Default)]
struct Tries {
    first_sent: Moment,
    /// When the first campaign that may have won was sent.
    may_have_won_from: Option<Moment>,
    /// How many campaigns may have won.
    may_have_won: usize,
}

pub fn check(history: &History) -> Vec<Violation> {
    let mut keys = HashMap::<(usize, &str), Tries>::new();
    for attempt in history.attempts.iter().filter(|attempt| attempt.asked == Asked::Campaign) {
        let fresh = Tries { first_sent: attempt.sent_at, ..Tries::default() };
        let tries = keys.entry((attempt.room, &attempt.holder)).or_insert(fresh);
        tries.first_sent = attempt.sent_at.min(tries.first_sent);
        if matches!(attempt.answer, Answer::Unknown | Answer::Ok(Seen::Won { .. })) {
            tries.may_have_won += 1;
            tries.may_have_won_from = Some(tries.may_have_won_from.unwrap_or(Moment::MAX).min(attempt.sent_at));
        }
    }
    let mut violations = Vec::new();
    let mut violation = |what: String| violations.push(Violation { promise: "exactly once", what });
    let mut terms = BTreeMap::<(usize, &str), BTreeMap<u64, Moment>>::new();
    let mut phantoms = BTreeSet::new();
    for (room, holder, term, at) in sightings(history) {
        let tries = keys.get(&(room, holder));
        if tries.and_then(|tries| tries.may_have_won_from).is_none_or(|from| at < from)
            && phantoms.insert((room, holder))
        {
            violation(format!(
                "room {room} is {holder}'s under {term} at {at} us, without a campaign that could have won it: {tries:?}"
            ));
        }
        let first = terms.entry((room, holder)).or_default().entry(term).or_insert(at);
        *first = at.min(*first);
    }
    for ((room, holder), terms) in terms {
        let Some(tries) = keys.get(&(room, holder)) else { continue };
        if terms.len() > 1 && terms.len() > tries.may_have_won {
            violation(format!("{} tries of {holder} in room {room} won {terms:?}", tries.may_have_won));
        }
        // A try with the same key after the end of its lease is a new campaign.
        for (term, at) in terms.iter().skip(1) {
            if *at < tries.first_sent + LEASE {
                violation(format!("{holder} won room {room} again with one key, under {term}: {terms:?}"));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn a_key_that_wins_twice_is_rejected() {
        let history = Made::new().campaign_unknown("a", 0).won("a", 5, 10, 20).read("a", 6, 30, 40).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_key_that_gets_its_lease_again_or_a_new_one_much_later_is_accepted() {
        let history = Made::new().campaign_unknown("a", 0).won("a", 5, 10, 20).won("a", 5, 30, 40).done();
        assert_eq!(check(&history), []);
        let history = Made::new().won("a", 5, 0, 20).won("a", 6, 4_000, 5_100).done();
        assert_eq!(check(&history), []);
    }

    #[test]
    fn a_holder_whose_campaign_was_not_done_or_never_sent_is_rejected() {
        let history = Made::new().campaign_without_effect("a", 0, 10).read("a", 6, 30, 40).done();
        assert_eq!(check(&history).len(), 1);
        let history = Made::new().read("a", 6, 30, 40).done();
        assert_eq!(check(&history).len(), 1);
        let history = Made::new().campaign_unknown("a", 50).read("a", 6, 30, 40).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_holder_whose_only_try_is_unknown_is_accepted_at_any_later_time() {
        let history = Made::new().campaign_unknown("a", 0).event(1, 90_000, Some(("a", 6))).done();
        assert_eq!(check(&history), []);
    }
}
