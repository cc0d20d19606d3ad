//! At no moment do two holders believe that a room is theirs.
//!
//! A holder may act until its deadline. So its belief counts until the deadline, even if its thread woke up earlier or
//! later: earlier, because the promise is to holders that act until the last moment, and later, because such a thread
//! reads the clock and stops. The belief of a holder that resigns ends before it sends the request. The belief of a
//! holder that is told of its loss ends when it is told.

use std::collections::{BTreeMap, HashMap};

use super::super::history::{Answer, Asked, History, Moment};
use super::leases::leases;
use super::violation::Violation;

/// Also returns the shortest time between two beliefs; it is negative if they overlap.
pub fn check(history: &History) -> (Vec<Violation>, Option<i64>) {
    let mut ends = HashMap::<u64, Moment>::new();
    let mut end = |term: u64, at: Moment| {
        let known = ends.entry(term).or_insert(Moment::MAX);
        *known = at.min(*known);
    };
    for stop in &history.stops {
        end(stop.term, stop.at);
    }
    for attempt in &history.attempts {
        match (attempt.asked, &attempt.answer, attempt.answered_at) {
            (Asked::Resign { term }, ..) => end(term, attempt.sent_at),
            (Asked::Renew { term }, Answer::NotHolder, Some(answered_at)) => end(term, answered_at),
            _ => {}
        }
    }
    let mut beliefs = BTreeMap::<usize, Vec<(Moment, Moment, u64, &str)>>::new();
    for lease in leases(history) {
        // A holder without a recorded stop has believed for as long as it was told.
        let to = ends.get(&lease.term).copied().unwrap_or(lease.lasts_until);
        // The holder never acted on an answer that came after its deadline.
        if lease.won_at < to {
            beliefs.entry(lease.room).or_default().push((lease.won_at, to, lease.term, lease.holder));
        }
    }
    let (mut violations, mut smallest) = (Vec::new(), None);
    for (room, mut beliefs) in beliefs {
        beliefs.sort_unstable();
        let mut last = beliefs[0];
        for belief in beliefs.into_iter().skip(1) {
            let gap = i64::try_from(belief.0).unwrap() - i64::try_from(last.1).unwrap();
            smallest = Some(smallest.map_or(gap, |least: i64| least.min(gap)));
            if gap < 0 {
                let what = format!("room {room}: {belief:?} began {} us before the end of {last:?}", -gap);
                violations.push(Violation { promise: "exclusion", what });
            }
            if belief.1 > last.1 {
                last = belief;
            }
        }
    }
    (violations, smallest)
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn a_second_holder_before_the_first_has_stopped_is_rejected() {
        let history = Made::new().won("a", 5, 0, 10).stopped(5, 4_000).won("b", 6, 3_000, 3_999).done();
        assert_eq!(check(&history).0.len(), 1);
    }

    #[test]
    fn a_second_holder_after_that_is_accepted_and_the_gap_is_measured() {
        let history = Made::new().won("a", 5, 0, 10).stopped(5, 4_000).won("b", 6, 3_000, 4_003).done();
        assert_eq!(check(&history), (vec![], Some(3_000)));
    }

    #[test]
    fn the_belief_of_a_holder_ends_before_it_asks_to_resign() {
        let history = Made::new().won("a", 5, 0, 10).resign_unknown("a", 5, 20).won("b", 6, 30, 40).done();
        assert_eq!(check(&history), (vec![], Some(20_000)));
    }
}
