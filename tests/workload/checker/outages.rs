//! Times in which no client was served.

use super::super::history::{Answer, Asked, Attempt, History, Moment};

/// Whether this is an answer that needs a quorum.
pub fn is_served(attempt: &Attempt) -> bool {
    attempt.asked != Asked::LocalRead && matches!(attempt.answer, Answer::Ok(_) | Answer::NotHolder)
}

/// The longest time between `from` and `to` without an answer of the kind `is_one`, from any node.
pub fn longest_outage(history: &History, is_one: fn(&Attempt) -> bool, from: Moment, to: Moment) -> Moment {
    let answers = history.attempts.iter().filter(|attempt| is_one(attempt)).filter_map(|attempt| attempt.answered_at);
    let mut moments: Vec<Moment> =
        answers.filter(|answered_at| (from..to).contains(answered_at)).chain([from, to]).collect();
    moments.sort_unstable();
    moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}
