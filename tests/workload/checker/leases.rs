//! What the history says about each lease.

use super::super::history::{Answer, Asked, GUARD, History, LEASE, Moment, Seen};

/// One lease, by the answers that its holder got.
#[derive(Debug, Clone)]
pub struct Lease<'a> {
    pub room: usize,
    pub holder: &'a str,
    pub term: u64,
    /// When its holder learnt of it.
    pub won_at: Moment,
    /// The lease lasts at least until this moment, unless it is resigned.
    pub lasts_until: Moment,
    /// When the request was sent that made the lease last longest. Its duration can't have begun earlier.
    pub counts_from: Moment,
    /// Without a fault the lease has ended by this moment at the latest.
    pub over_by: Moment,
    /// The first moment at which the lease may have been resigned.
    pub resigned_from: Option<Moment>,
}

/// All leases whose holders got an answer, in the order of their terms.
pub fn leases(history: &History) -> Vec<Lease<'_>> {
    let mut leases = std::collections::BTreeMap::<u64, Lease>::new();
    for attempt in &history.attempts {
        if let (Answer::Ok(Seen::Won { term, valid_for }), Some(answered_at)) = (&attempt.answer, attempt.answered_at) {
            let until = attempt.sent_at + valid_for;
            let lease = leases.entry(*term).or_insert(Lease {
                room: attempt.room,
                holder: &attempt.holder,
                term: *term,
                won_at: answered_at,
                lasts_until: until,
                counts_from: attempt.sent_at,
                over_by: 0,
                resigned_from: None,
            });
            lease.won_at = lease.won_at.min(answered_at);
            lease.lasts_until = lease.lasts_until.max(until);
            // The answer to a request that waited for the room may come late, and yet be about an earlier time.
            if answered_at + valid_for + GUARD > lease.over_by {
                lease.over_by = answered_at + valid_for + GUARD;
                lease.counts_from = attempt.sent_at;
            }
        }
    }
    for attempt in &history.attempts {
        match attempt.asked {
            Asked::Resign { term } if matches!(attempt.answer, Answer::Ok(_) | Answer::Unknown) => {
                if let Some(lease) = leases.get_mut(&term) {
                    lease.resigned_from = Some(lease.resigned_from.unwrap_or(Moment::MAX).min(attempt.sent_at));
                }
            }
            Asked::Renew { term } if attempt.answer == Answer::Unknown => {
                // The renewal may have been done just before the end, so the lease may last longer than its holder
                // knows.
                if let Some(lease) = leases.get_mut(&term) {
                    lease.over_by += LEASE + GUARD;
                }
            }
            _ => {}
        }
    }
    leases.into_values().collect()
}
