//! How much happened in a history. One in which too little did proves nothing.

use super::history::{Answer, Asked, Attempt, History, Seen};

/// How often the clients had their way, and how much else was seen.
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
