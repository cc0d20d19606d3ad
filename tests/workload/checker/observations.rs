//! What the answers and events of a history say about who holds a room.

use super::super::history::{Answer, Asked, History, Moment, Seen};

/// A linearizable answer about who holds a room.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    pub room: usize,
    pub sent_at: Moment,
    pub answered_at: Moment,
    pub says: Says<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says<'a> {
    Occupied {
        holder: &'a str,
        term: u64,
    },
    Vacant,
    /// The lease with this term has ended.
    Over {
        term: u64,
    },
    /// The lease with this term lasted until this answer was decided, and ended then.
    Resigned {
        term: u64,
    },
}

/// All linearizable answers.
pub fn observations(history: &History) -> impl Iterator<Item = Observation<'_>> {
    history.attempts.iter().filter(|attempt| attempt.asked != Asked::LocalRead).filter_map(|attempt| {
        let says = match (&attempt.answer, attempt.asked) {
            (Answer::Ok(Seen::Won { term, .. }), _) => Says::Occupied { holder: &attempt.holder, term: *term },
            (Answer::Ok(Seen::Occupied { holder, term }), _) => Says::Occupied { holder, term: *term },
            (Answer::Ok(Seen::Vacant), _) => Says::Vacant,
            (Answer::Ok(Seen::Resigned { term }), _) => Says::Resigned { term: *term },
            (Answer::NotHolder, Asked::Renew { term } | Asked::Resign { term }) => Says::Over { term },
            _ => return None,
        };
        Some(Observation { room: attempt.room, sent_at: attempt.sent_at, answered_at: attempt.answered_at?, says })
    })
}

/// Everything that shows a lease, even if it was out of date: room, holder, term, and the moment.
pub fn sightings(history: &History) -> impl Iterator<Item = (usize, &str, u64, Moment)> {
    let local = history.attempts.iter().filter(|attempt| attempt.asked == Asked::LocalRead);
    let local = local.filter_map(|attempt| match &attempt.answer {
        Answer::Ok(Seen::Occupied { holder, term }) => {
            Some((attempt.room, holder.as_str(), *term, attempt.answered_at?))
        }
        _ => None,
    });
    let events = history.events.iter().filter_map(|event| {
        let (holder, term) = event.holder.as_ref()?;
        Some((event.room, holder.as_str(), *term, event.at))
    });
    let answers = observations(history).filter_map(|observation| match observation.says {
        Says::Occupied { holder, term } => Some((observation.room, holder, term, observation.answered_at)),
        _ => None,
    });
    answers.chain(local).chain(events)
}
