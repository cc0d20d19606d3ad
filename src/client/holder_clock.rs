//! The holder's clock: how much of a lease has passed, for the side that must stop in time.
//!
//! A holder may stop early, never late. So the elapsed time is the largest of what three kernel clocks show:
//!
//! - `CLOCK_BOOTTIME` goes on while the machine sleeps.
//! - `CLOCK_MONOTONIC_RAW` is not slowed down by NTP.
//! - `CLOCK_REALTIME` may jump forward over a pause that the other two missed.
//!
//! The standard library's `Instant` reads `CLOCK_MONOTONIC`, which stops while the machine sleeps. With it, a laptop
//! that was closed for an hour would lead on.
//!
//! No clock sees every pause of a virtual machine. So the resource that the lease guards must check the fencing token.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// One reading of three clocks of this machine. Only the difference of two readings has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderInstant {
    /// Since boot, including the time that the machine slept (`CLOCK_BOOTTIME`).
    pub boot: Duration,
    /// Since boot, without corrections by NTP (`CLOCK_MONOTONIC_RAW`).
    pub raw: Duration,
    /// Since 1970, as the machine's clock is set (`CLOCK_REALTIME`).
    pub wall: Duration,
}

impl HolderInstant {
    /// The largest difference that a clock shows since `earlier`. A clock that went back counts as zero.
    pub fn since(self, earlier: HolderInstant) -> Duration {
        let boot = self.boot.saturating_sub(earlier.boot);
        let raw = self.raw.saturating_sub(earlier.raw);
        let wall = self.wall.saturating_sub(earlier.wall);
        boot.max(raw).max(wall)
    }
}

/// The clock that a lease is counted on. It must go on while the machine sleeps, which [`std::time::Instant`] does not.
///
/// [`SystemHolderClock`] is the real one. A test can set another with
/// [`ClientBuilder::clock`](super::ClientBuilder::clock), and decide itself how fast time passes.
pub trait HolderClock: Send + Sync + 'static {
    /// Reads the clocks.
    fn now(&self) -> HolderInstant;
}

/// The clocks of the Linux kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemHolderClock;

impl HolderClock for SystemHolderClock {
    fn now(&self) -> HolderInstant {
        HolderInstant { boot: read(ClockId::Boottime), raw: read(ClockId::MonotonicRaw), wall: read(ClockId::Realtime) }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the client's clock")]
fn read(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A moment on the clocks of this machine, such as the end of a lease. All processes of the machine can use it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Deadline {
    from: HolderInstant,
    after: Duration,
}

impl Deadline {
    /// The moment that is `after` later than `from`.
    pub fn new(from: HolderInstant, after: Duration) -> Deadline {
        Deadline { from, after }
    }

    /// The time that is left at `now`. Zero if the moment has passed.
    pub fn remaining(&self, now: HolderInstant) -> Duration {
        self.after.saturating_sub(now.since(self.from))
    }

    /// Whether the moment has passed at `now`.
    pub fn is_over(&self, now: HolderInstant) -> bool {
        self.remaining(now).is_zero()
    }

    /// The moment that leaves more time at `now`: this one or `other`.
    pub fn later(self, other: Deadline, now: HolderInstant) -> Deadline {
        if other.remaining(now) > self.remaining(now) { other } else { self }
    }

    /// A moment that is counted from the same start. `scale` computes its distance from the start from the old
    /// distance.
    pub fn scaled(&self, scale: impl FnOnce(Duration) -> Duration) -> Deadline {
        Deadline { from: self.from, after: scale(self.after) }
    }
}

#[cfg(test)]
mod tests;
