//! What is known of each lease.

use super::super::history::{Answer, Asked, GUARD, History, LEASE, Moment, Seen};

/// What is known of one lease from its holder's answers.
#[derive(Debug, Clone)]
pub struct Lease<'a> {
    pub room: usize,
    pub holder: &'a str,
    pub term: u64,
    /// When its holder first knew.
    pub won_at: Moment,
    /// It lasts at least until then, unless it is resigned.
    pub lasts_until: Moment,
    /// The attempt that made it so long was sent then, so its duration cannot have begun before.
    pub counts_from: Moment,
    /// Its duration had begun by then, so it is over in time if it is over then, if nothing is done to the nodes.
    pub over_by: Moment,
    /// The first moment at which it may have been resigned.
    pub resigned_from: Option<Moment>,
}

pub fn leases(history: &History) -> Vec<Lease<'_>> {
    let mut leases = std::collections::BTreeMap::<u64, Lease>::new();
    for attempt in &history.attempts {
        if let (Answer::Ok(Seen::Won { term, valid_for }), Some(t1)) = (&attempt.answer, attempt.t1) {
            let until = attempt.t0 + valid_for;
            let lease = leases.entry(*term).or_insert(Lease {
                room: attempt.room,
                holder: &attempt.holder,
                term: *term,
                won_at: t1,
                lasts_until: until,
                counts_from: attempt.t0,
                over_by: 0,
                resigned_from: None,
            });
            lease.won_at = lease.won_at.min(t1);
            lease.lasts_until = lease.lasts_until.max(until);
            // The latest answer may be of an earlier time, as one that waited for the room is.
            if t1 + valid_for + GUARD > lease.over_by {
                lease.over_by = t1 + valid_for + GUARD;
                lease.counts_from = attempt.t0;
            }
        }
    }
    for attempt in &history.attempts {
        match attempt.asked {
            Asked::Resign { term } if matches!(attempt.answer, Answer::Ok(_) | Answer::Unknown) => {
                if let Some(lease) = leases.get_mut(&term) {
                    lease.resigned_from = Some(lease.resigned_from.unwrap_or(Moment::MAX).min(attempt.t0));
                }
            }
            Asked::Renew { term } if attempt.answer == Answer::Unknown => {
                // It may have made the lease longer than its holder knows, when that was nearly over.
                if let Some(lease) = leases.get_mut(&term) {
                    lease.over_by += LEASE + GUARD;
                }
            }
            _ => {}
        }
    }
    leases.into_values().collect()
}
