//! Checks the numbers in raft messages of peers, requests and answers, before openraft sees them.
//!
//! openraft trusts its peers. One message with an absurd raft term would be stored, and would stop every node that hears
//! of it, at each of its starts.

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};

use crate::peer::SnapshotHead;
use crate::raft_types::numbers::{Implausible, check_log_id, check_vote};
use crate::raft_types::{LogId, TypeConfig, Vote};

/// A peer's raft term may be ahead of this node's by this much. In the time of so many raft elections, more than a day,
/// the node would have heard of one of them.
pub const RAFT_TERM_LEAD_MAX: u64 = 1 << 20;

/// Why a raft message cannot be true.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Untrue {
    /// A raft term or index is higher than any that can exist.
    #[error(transparent)]
    Implausible(#[from] Implausible),
    /// A raft term is too far ahead of this node's.
    #[error("raft term {raft_term} cannot be true: this node's is {own}")]
    TooFarAhead {
        /// The raft term in the message.
        raft_term: u64,
        /// This node's raft term.
        own: u64,
    },
    /// The entries do not follow each other, or not the entry that they should follow.
    #[error("entry {found} does not follow {before}")]
    Gap {
        /// The entry that is out of place.
        found: LogId,
        /// The entry before it, in words.
        before: String,
    },
    /// The answer to an append is about an entry that was not sent.
    #[error("the answer is about an entry that was not sent: {0}")]
    NotSent(String),
}

/// A raft message, with its votes and the ids of its log entries.
pub trait RaftMessage {
    /// Calls `see` with each vote and each log id in the message.
    fn numbers(&self, see: &mut dyn FnMut(Number<'_>));
}

/// A vote or a log id in a raft message.
pub enum Number<'a> {
    /// A vote.
    Vote(&'a Vote),
    /// The id of a log entry.
    LogId(&'a LogId),
}

/// Checks every vote and log id of a message by their limits and by this node's raft term.
///
/// # Errors
/// The first number that cannot be true.
pub fn check(message: &impl RaftMessage, own_raft_term: u64) -> Result<(), Untrue> {
    let mut result = Ok(());
    message.numbers(&mut |number| {
        if result.is_ok() {
            result = check_number(&number, own_raft_term);
        }
    });
    result
}

fn check_number(number: &Number<'_>, own: u64) -> Result<(), Untrue> {
    let raft_term = match number {
        Number::Vote(vote) => {
            check_vote(vote)?;
            vote.leader_id.term
        }
        Number::LogId(log_id) => {
            check_log_id(log_id)?;
            log_id.leader_id.term
        }
    };
    if raft_term > own.saturating_add(RAFT_TERM_LEAD_MAX) {
        Err(Untrue::TooFarAhead { raft_term, own })
    } else {
        Ok(())
    }
}

/// Checks that the entries of an append follow each other, and the entry that they are sent to follow.
///
/// # Errors
/// `Gap` at the first entry that is out of place.
pub fn check_order(append: &AppendEntriesRequest<TypeConfig>) -> Result<(), Untrue> {
    let mut before = append.prev_log_id;
    for entry in &append.entries {
        let found = entry.log_id;
        let expected = before.map_or(0, |before| before.index + 1);
        let falls_back = before.is_some_and(|before| found.leader_id.term < before.leader_id.term);
        if found.index != expected || falls_back || found.leader_id.term > append.vote.leader_id.term {
            return Err(Untrue::Gap { found, before: in_words(before) });
        }
        before = Some(found);
    }
    Ok(())
}

/// Checks that the answer to an append from `first` to `last` is about these entries.
///
/// # Errors
/// `NotSent` if it is about another one.
pub fn check_answer(
    answer: &AppendEntriesResponse<TypeConfig>,
    first: Option<LogId>,
    last: Option<LogId>,
) -> Result<(), Untrue> {
    match answer {
        AppendEntriesResponse::PartialSuccess(upto) if *upto < first || *upto > last => {
            Err(Untrue::NotSent(in_words(*upto)))
        }
        _ => Ok(()),
    }
}

fn in_words(log_id: Option<LogId>) -> String {
    log_id.map_or_else(|| "the beginning of the log".to_owned(), |log_id| format!("{log_id}"))
}

fn see_all(see: &mut dyn FnMut(Number<'_>), vote: &Vote, log_ids: &[Option<LogId>]) {
    see(Number::Vote(vote));
    log_ids.iter().flatten().for_each(|log_id| see(Number::LogId(log_id)));
}

impl RaftMessage for AppendEntriesRequest<TypeConfig> {
    fn numbers(&self, see: &mut dyn FnMut(Number<'_>)) {
        see_all(see, &self.vote, &[self.prev_log_id, self.leader_commit]);
        self.entries.iter().for_each(|entry| see(Number::LogId(&entry.log_id)));
    }
}

impl RaftMessage for AppendEntriesResponse<TypeConfig> {
    fn numbers(&self, see: &mut dyn FnMut(Number<'_>)) {
        match self {
            AppendEntriesResponse::PartialSuccess(Some(log_id)) => see(Number::LogId(log_id)),
            AppendEntriesResponse::HigherVote(vote) => see(Number::Vote(vote)),
            AppendEntriesResponse::Success
            | AppendEntriesResponse::PartialSuccess(None)
            | AppendEntriesResponse::Conflict => {}
        }
    }
}

impl RaftMessage for VoteRequest<TypeConfig> {
    fn numbers(&self, see: &mut dyn FnMut(Number<'_>)) {
        see_all(see, &self.vote, &[self.last_log_id]);
    }
}

impl RaftMessage for VoteResponse<TypeConfig> {
    fn numbers(&self, see: &mut dyn FnMut(Number<'_>)) {
        see_all(see, &self.vote, &[self.last_log_id]);
    }
}

impl RaftMessage for TransferLeaderRequest<TypeConfig> {
    fn numbers(&self, see: &mut dyn FnMut(Number<'_>)) {
        see_all(see, self.from_leader(), &[self.last_log_id().copied()]);
    }
}

impl RaftMessage for TransferLeaderResponse<TypeConfig> {
    fn numbers(&self, _see: &mut dyn FnMut(Number<'_>)) {}
}

impl RaftMessage for SnapshotHead {
    fn numbers(&self, see: &mut dyn FnMut(Number<'_>)) {
        see_all(see, &self.vote, &[self.meta.last_log_id, *self.meta.last_membership.log_id()]);
    }
}

impl RaftMessage for SnapshotResponse<TypeConfig> {
    fn numbers(&self, see: &mut dyn FnMut(Number<'_>)) {
        see(Number::Vote(&self.vote));
    }
}

#[cfg(test)]
mod tests;
