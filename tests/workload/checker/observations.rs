//! What answers and events say about who holds a room.

use super::super::history::{Answer, Asked, History, Moment, Seen};

/// A linearizable answer about who holds a room.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    pub room: usize,
    pub t0: Moment,
    pub t1: Moment,
    pub says: Says<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says<'a> {
    Held {
        holder: &'a str,
        term: u64,
    },
    Vacant,
    /// The lease of this term has ended.
    Over {
        term: u64,
    },
    /// The lease of this term was held until this moment, and ended then.
    Resigned {
        term: u64,
    },
}

pub fn observations(history: &History) -> impl Iterator<Item = Observation<'_>> {
    history.attempts.iter().filter(|attempt| attempt.asked != Asked::LocalRead).filter_map(|attempt| {
        let says = match (&attempt.answer, attempt.asked) {
            (Answer::Ok(Seen::Won { term, .. }), _) => Says::Held { holder: &attempt.holder, term: *term },
            (Answer::Ok(Seen::Held { holder, term }), _) => Says::Held { holder, term: *term },
            (Answer::Ok(Seen::Vacant), _) => Says::Vacant,
            (Answer::Ok(Seen::Resigned { term }), _) => Says::Resigned { term: *term },
            (Answer::NotHolder, Asked::Renew { term } | Asked::Resign { term }) => Says::Over { term },
            _ => return None,
        };
        Some(Observation { room: attempt.room, t0: attempt.t0, t1: attempt.t1?, says })
    })
}

/// Anything that shows a lease, however stale: room, holder, term, and when it had been shown.
pub fn sightings(history: &History) -> impl Iterator<Item = (usize, &str, u64, Moment)> {
    let local = history.attempts.iter().filter(|attempt| attempt.asked == Asked::LocalRead);
    let local = local.filter_map(|attempt| match &attempt.answer {
        Answer::Ok(Seen::Held { holder, term }) => Some((attempt.room, holder.as_str(), *term, attempt.t1?)),
        _ => None,
    });
    let events = history.events.iter().filter_map(|event| {
        let (holder, term) = event.held.as_ref()?;
        Some((event.room, holder.as_str(), *term, event.at))
    });
    let answers = observations(history).filter_map(|observation| match observation.says {
        Says::Held { holder, term } => Some((observation.room, holder, term, observation.t1)),
        _ => None,
    });
    answers.chain(local).chain(events)
}
