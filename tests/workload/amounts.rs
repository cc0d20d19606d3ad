//! Counts what happened in a history. A history in which too little happened proves nothing.

use super::history::{Answer, Asked, Attempt, History, Seen};

/// How many operations succeeded, and how many events and samples were recorded.
#[derive(Debug, Clone, Copy)]
pub struct Amounts {
    pub won: usize,
    pub renewed: usize,
    pub resigned: usize,
    pub events: usize,
    pub samples: usize,
}

impl Amounts {
    pub fn of(history: &History) -> Amounts {
        let count = |wanted: fn(&Attempt) -> bool| history.attempts.iter().filter(|attempt| wanted(attempt)).count();
        Amounts {
            won: count(|attempt| {
                attempt.asked == Asked::Campaign && matches!(attempt.answer, Answer::Ok(Seen::Won { .. }))
            }),
            renewed: count(|attempt| matches!((attempt.asked, &attempt.answer), (Asked::Renew { .. }, Answer::Ok(_)))),
            resigned: count(|attempt| {
                matches!((attempt.asked, &attempt.answer), (Asked::Resign { .. }, Answer::Ok(_)))
            }),
            events: history.events.len(),
            samples: history.samples.len(),
        }
    }
}
