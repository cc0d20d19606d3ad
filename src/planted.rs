//! Bugs that tests plant, to show that they are noticed. There are none without the feature `planted-bugs`, which
//! nobody builds but `scripts/planted-bugs`: [`is_planted`] is then `false` before the program runs.
//!
//! With it, the variable `QUORATE_PLANTED_BUG` names the one that this process has.

/// A mistake that somebody could make, or that somebody has made, here or in a service like this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The log is acknowledged before it is flushed.
    LogNotFlushed,
    /// A raft follower acknowledges entries that it hasn't stored.
    AcknowledgedBeforeAppended,
    /// A vote is answered without being stored.
    VoteNotSaved,
    /// A snapshot isn't flushed before the log behind it is purged.
    SnapshotNotFlushed,
    /// A snapshot forgets log time.
    SnapshotWithoutLogTime,
    /// Leases end by the wall clock.
    WallClock,
    /// A raft leader's private clock is kept over the reigns of others.
    PrivateClockKept,
    /// A command that was stamped in another reign is applied.
    StaleStampApplied,
    /// A raft leader stamps before it has applied an entry of its reign.
    StampedBeforeOwnEntry,
    /// A read says that a lease has ended before the log does.
    ExpiryUnlogged,
    /// A raft leader answers without having asked its quorum.
    NoReadBarrier,
    /// The counter of fencing tokens is kept with the leases, and forgotten with them.
    TokenForgotten,
    /// Who asks again for what it has won is told the whole duration, and not what is left.
    WholeDurationAgain,
    /// Whoever knows a room's name can resign its lease.
    AnybodyResigns,
    /// What a waiter with a key has won is given back when its connection breaks.
    KeyedGrantGivenBack,
    /// A try that is under way when a wait is over is left alone.
    TryLeftAlone,
}

impl Bug {
    /// All, by the names that the variable takes.
    pub const ALL: [(Bug, &str); 16] = [
        (Bug::LogNotFlushed, "log-not-flushed"),
        (Bug::AcknowledgedBeforeAppended, "acknowledged-before-appended"),
        (Bug::VoteNotSaved, "vote-not-saved"),
        (Bug::SnapshotNotFlushed, "snapshot-not-flushed"),
        (Bug::SnapshotWithoutLogTime, "snapshot-without-log-time"),
        (Bug::WallClock, "wall-clock"),
        (Bug::PrivateClockKept, "private-clock-kept"),
        (Bug::StaleStampApplied, "stale-stamp-applied"),
        (Bug::StampedBeforeOwnEntry, "stamped-before-own-entry"),
        (Bug::ExpiryUnlogged, "expiry-unlogged"),
        (Bug::NoReadBarrier, "no-read-barrier"),
        (Bug::TokenForgotten, "token-forgotten"),
        (Bug::WholeDurationAgain, "whole-duration-again"),
        (Bug::AnybodyResigns, "anybody-resigns"),
        (Bug::KeyedGrantGivenBack, "keyed-grant-given-back"),
        (Bug::TryLeftAlone, "try-left-alone"),
    ];
}

/// Whether this process has the bug.
#[cfg(not(feature = "planted-bugs"))]
pub const fn is_planted(_bug: Bug) -> bool {
    false
}

/// Whether this process has the bug.
#[cfg(feature = "planted-bugs")]
pub fn is_planted(bug: Bug) -> bool {
    static PLANTED: std::sync::LazyLock<Option<Bug>> = std::sync::LazyLock::new(|| {
        let wanted = std::env::var("QUORATE_PLANTED_BUG").ok()?;
        let found = Bug::ALL.iter().find(|(_, name)| *name == wanted);
        Some(found.unwrap_or_else(|| panic!("QUORATE_PLANTED_BUG={wanted} is none of {:?}", Bug::ALL)).0)
    });
    *PLANTED == Some(bug)
}
