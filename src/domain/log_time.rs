//! Time by the log. All arithmetic saturates, so no input can make it wrap or panic.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds of lease time since the cluster began.
///
/// Log time only grows, and it never runs faster than real time. Leases end by it and by no other time. It says
/// nothing about the date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogTime(pub u64);

impl LogTime {
    /// The moment `duration` after this one.
    pub fn after(self, duration: Duration) -> LogTime {
        LogTime(self.0.saturating_add(millis(duration)))
    }

    /// The time from `earlier` to this moment, or zero if `earlier` is later.
    pub fn since(self, earlier: LogTime) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for LogTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// The time that the raft leader writes into a command when it proposes it.
///
/// With the raft term, `apply` can refuse a command that was stamped in one reign and appended in another. Its time
/// comes from a clock that the log has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Log time as the raft leader read it.
    pub log_time: LogTime,
    /// The raft term of that moment.
    pub raft_term: u64,
}

/// Milliseconds since 1970 by a wall clock. It is for display and for the first fencing floor. It ends no lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(pub u64);

/// Ties one moment of log time to the calendar. So all nodes show the same `expires_at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallAnchor {
    /// The moment.
    pub log_time: LogTime,
    /// The raft leader's wall clock at that moment.
    pub wall_time: WallTime,
}

impl WallAnchor {
    /// The calendar time of a moment of log time.
    pub fn wall_time_of(&self, log_time: LogTime) -> WallTime {
        let (moment, anchor) = (log_time.0, self.log_time.0);
        WallTime(
            self.wall_time
                .0
                .saturating_add(moment.saturating_sub(anchor))
                .saturating_sub(anchor.saturating_sub(moment)),
        )
    }
}

/// How long a lease lasts without a renewal: 5 to 300 whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct LeaseDuration(u16);

impl LeaseDuration {
    /// With a shorter lease, a holder could not renew in time when a node is lost.
    pub const SECONDS_MIN: u16 = 5;
    /// With a longer lease, other contenders would wait too long for a holder that has vanished.
    pub const SECONDS_MAX: u16 = 300;

    /// The duration if a contender names none.
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

    /// The time that the nodes wait beyond the promise to the holder: 10 ms and a thousandth of the duration.
    ///
    /// The thousandth covers a holder's clock that runs 500 ppm slow and a raft leader's that runs 500 ppm fast.
    /// The 10 ms cover rounding and the sampling of clocks.
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
