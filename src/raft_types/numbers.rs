//! The highest raft terms and log indexes that can be true.
//!
//! openraft adds one to these numbers. At the end of their range it panics. If such a number were stored, it would panic
//! again at every start.

use super::{LogId, Vote};

/// No raft term is higher. At a million raft elections a second it would be reached after nine years.
pub const RAFT_TERM_MAX: u64 = 1 << 48;

/// No log index is higher. At a million entries a second it would be reached after nine years.
pub const LOG_INDEX_MAX: u64 = 1 << 48;

/// A number that cannot be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Implausible {
    /// Higher than [`RAFT_TERM_MAX`].
    #[error("raft term {0} cannot be true: no cluster has held so many raft elections")]
    RaftTerm(u64),
    /// Higher than [`LOG_INDEX_MAX`].
    #[error("log index {0} cannot be true: no cluster has written so many log entries")]
    LogIndex(u64),
}

/// Checks a raft term.
///
/// # Errors
/// If it is higher than [`RAFT_TERM_MAX`].
pub fn check_raft_term(raft_term: u64) -> Result<(), Implausible> {
    if raft_term > RAFT_TERM_MAX { Err(Implausible::RaftTerm(raft_term)) } else { Ok(()) }
}

/// Checks the raft term of a vote.
///
/// # Errors
/// If it is higher than [`RAFT_TERM_MAX`].
pub fn check_vote(vote: &Vote) -> Result<(), Implausible> {
    check_raft_term(vote.leader_id.term)
}

/// Checks the raft term and the index of a log entry.
///
/// # Errors
/// If one of them is higher than its maximum.
pub fn check_log_id(log_id: &LogId) -> Result<(), Implausible> {
    check_raft_term(log_id.leader_id.term)?;
    if log_id.index > LOG_INDEX_MAX { Err(Implausible::LogIndex(log_id.index)) } else { Ok(()) }
}
