//! Time as the log knows it. All arithmetic saturates: no input can make it wrap or panic.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds of lease time since the cluster began.
///
/// It only grows, it never runs faster than real time, and it is the only time by which a lease can end.
/// It says nothing about the date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogTime(pub u64);

impl LogTime {
    /// This moment and `duration` more.
    pub fn after(self, duration: Duration) -> LogTime {
        LogTime(self.0.saturating_add(millis(duration)))
    }

    /// How long after `earlier` this is; zero if it isn't.
    pub fn since(self, earlier: LogTime) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for LogTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// What the raft leader writes into a command when it proposes it.
///
/// The raft term is there so that `apply` can refuse a command which was stamped in one reign and appended
/// in another: its time comes from a clock that the log has since left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The raft leader's reading of log time.
    pub log_time: LogTime,
    /// The raft term in which it was read.
    pub raft_term: u64,
}

/// Milliseconds since 1970 by a wall clock. For display only; nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(pub u64);

/// How long a lease lasts when it is not renewed: 5 to 300 whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct LeaseDuration(u16);

impl LeaseDuration {
    /// The shortest that a holder can renew in time through the loss of a node.
    pub const SECONDS_MIN: u16 = 5;
    /// The longest that others should have to wait for a holder that has vanished.
    pub const SECONDS_MAX: u16 = 300;

    /// What a contender gets that asks for nothing else.
    pub const DEFAULT: Self = Self(30);

    /// A duration of whole seconds, if it is within the limits.
    pub fn from_secs(seconds: u64) -> Option<Self> {
        let seconds = u16::try_from(seconds).ok()?;
        (Self::SECONDS_MIN..=Self::SECONDS_MAX).contains(&seconds).then_some(Self(seconds))
    }

    /// The same, as a `Duration`.
    pub fn as_duration(self) -> Duration {
        Duration::from_secs(u64::from(self.0))
    }

    /// What the nodes wait beyond the time that the holder was told: 10 ms and a thousandth.
    ///
    /// A holder whose clock runs 500 ppm slow, against raft leaders whose clocks run 500 ppm fast, has stopped
    /// by then; the 10 ms cover rounding and the sampling of clocks.
    pub fn guard(self) -> Duration {
        Duration::from_millis(10) + self.as_duration() / 1000
    }
}

impl<'de> Deserialize<'de> for LeaseDuration {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = u16::deserialize(deserializer)?;
        Self::from_secs(seconds.into()).ok_or_else(|| serde::de::Error::custom("lease duration out of range"))
    }
}

/// Whole milliseconds of a duration. More than a `u64` can hold becomes the largest one.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
