//! The time in which nobody was answered.

use super::super::history::{Answer, Asked, Attempt, History, Moment};

/// Whether a quorum has answered.
pub fn is_served(attempt: &Attempt) -> bool {
    attempt.asked != Asked::LocalRead && matches!(attempt.answer, Answer::Ok(_) | Answer::NotHolder)
}

/// The longest time between two moments in which no answer of a kind came from any node.
pub fn longest_outage(history: &History, is_one: fn(&Attempt) -> bool, from: Moment, to: Moment) -> Moment {
    let answers = history.attempts.iter().filter(|attempt| is_one(attempt)).filter_map(|attempt| attempt.t1);
    let mut moments: Vec<Moment> = answers.filter(|t1| (from..to).contains(t1)).chain([from, to]).collect();
    moments.sort_unstable();
    moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}
