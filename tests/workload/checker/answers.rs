//! Valid requests are answered. Every response is documented. While no fault disturbs the nodes, every answer has an
//! outcome. An acknowledged renewal has given the lease its whole duration again.

use super::super::history::{Answer, Asked, Attempt, GUARD, History, LEASE, Moment, SECOND, Seen};
use super::calm::is_calm;
use super::violation::Violation;

/// A client that waits this long for its answer gets an outcome, as long as all nodes serve. Enough for a busy machine.
const ANSWERED_WITHIN: Moment = 2 * SECOND;

pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    for attempt in &history.attempts {
        let mut violation = |what: &str| {
            violations.push(Violation { promise: "answers", what: format!("{what}: {attempt:?}") });
        };
        if !is_documented(attempt) {
            violation("not a documented response");
        }
        let has_outcome = matches!(attempt.answer, Answer::Ok(_) | Answer::NotHolder);
        let is_patient = attempt.hangs_up >= attempt.sent_at + attempt.waits + ANSWERED_WITHIN;
        if !has_outcome
            && is_patient
            && is_calm(history, attempt.sent_at, attempt.answered_at.unwrap_or(attempt.hangs_up))
        {
            violation("no outcome, although no fault disturbed the nodes");
        }
        if let (Asked::Renew { .. }, Answer::Ok(Seen::Won { valid_for, .. }), Some(answered_at)) =
            (attempt.asked, &attempt.answer, attempt.answered_at)
            && valid_for + (answered_at - attempt.sent_at) + GUARD < LEASE
        {
            violation("a renewal that made the lease too short");
        }
    }
    violations
}

/// All requests are valid, and no client exceeds a rate limit.
fn is_documented(attempt: &Attempt) -> bool {
    match attempt.status {
        0 | 503 => true,
        200 => matches!(attempt.answer, Answer::Ok(_)),
        404 => attempt.answer == Answer::NotHolder,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn no_outcome_in_calm_time_is_rejected() {
        assert_eq!(check(&Made::new().campaign_unknown("a", 0).done()).len(), 1);
        assert_eq!(check(&Made::new().campaign_without_effect("a", 0, 10).done()).len(), 1);
        let made = Made::new().fault(0, 100, Some(200), &[]).resign_unknown("a", 5, 1_201);
        assert_eq!(check(&made.done()).len(), 1, "the fault was over");
    }

    #[test]
    fn no_outcome_is_accepted_if_the_client_hung_up_early_or_a_fault_disturbed() {
        let mut history = Made::new().campaign_unknown("a", 0).done();
        history.attempts[0].hangs_up -= 1;
        assert_eq!(check(&history), []);
        let mut history = Made::new().campaign_unknown("a", 0).done();
        history.attempts[0].waits = 1;
        assert_eq!(check(&history), [], "it waited for the room most of the time");
        let fault = || Made::new().fault(100, 200, Some(300), &[]);
        assert_eq!(check(&fault().campaign_unknown("a", 0).resign_unknown("a", 5, 1_299).done()), []);
        assert_eq!(check(&fault().campaign_without_effect("a", 90, 110).done()), []);
    }

    #[test]
    fn a_response_that_is_not_documented_is_rejected() {
        for status in [201, 400, 401, 403, 404, 409, 429, 500, 502, 504] {
            let mut history = Made::new().fault(0, 9_000, Some(9_000), &[]).campaign_without_effect("a", 10, 20).done();
            history.attempts[0].status = status;
            assert_eq!(check(&history).len(), 1, "{status}");
        }
        let mut history = Made::new().fault(0, 9_000, Some(9_000), &[]).campaign_unknown("a", 10).done();
        history.attempts[0].status = 200;
        assert_eq!(check(&history).len(), 1, "a body that can't be read");
    }

    #[test]
    fn documented_responses_are_accepted() {
        let made =
            Made::new().won("a", 5, 0, 10).read("a", 5, 20, 30).renewed("a", 5, 5, 40, 50).resigned("a", 5, 60, 70);
        assert_eq!(check(&made.not_holder("a", 5, 80, 90).done()), []);
    }

    #[test]
    fn a_renewal_that_does_not_renew_is_rejected() {
        let mut history = Made::new().won("a", 5, 0, 10).renewed("a", 5, 5, 1_000, 1_100).done();
        history.attempts[1].answer = Answer::Ok(Seen::Won { term: 5, valid_for: 4_884_999 });
        assert_eq!(check(&history).len(), 1);
        history.attempts[1].answer = Answer::Ok(Seen::Won { term: 5, valid_for: 4_885_000 });
        assert_eq!(check(&history), []);
    }
}
