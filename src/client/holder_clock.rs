//! The holder's clock: how much of a lease has passed, seen from the side that must stop in time.
//!
//! A holder may stop early, never late. So elapsed time is the largest of what three kernel clocks say:
//! `CLOCK_BOOTTIME` counts while the machine sleeps, `CLOCK_MONOTONIC_RAW` isn't slewed by NTP, and
//! `CLOCK_REALTIME`, where it moved forward, may know of a pause that the other two missed. `std`'s `Instant` is
//! `CLOCK_MONOTONIC`, which stands still during a suspend: a laptop that was closed for an hour would lead on.
//!
//! No clock sees every pause of a virtual machine. What the lease guards must check the fencing token, too.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// One reading of the holder's clocks; good only for differences on one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderInstant {
    /// Since boot, suspends included.
    pub boot: Duration,
    /// Since boot, as the oscillator counts.
    pub raw: Duration,
    /// Since 1970, as somebody set it.
    pub wall: Duration,
}

impl HolderInstant {
    /// The longest time that may have passed since `earlier`. A clock that went back counts for nothing.
    pub fn since(self, earlier: HolderInstant) -> Duration {
        let boot = self.boot.saturating_sub(earlier.boot);
        let raw = self.raw.saturating_sub(earlier.raw);
        let wall = self.wall.saturating_sub(earlier.wall);
        boot.max(raw).max(wall)
    }
}

/// Time as a holder needs it, behind a trait so that a test can let it pass.
pub trait HolderClock: Send + Sync + 'static {
    /// The clocks, read now.
    fn now(&self) -> HolderInstant;
}

/// The kernel's clocks.
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

/// A moment after which something must not be relied on any more. It means the same to all processes of a machine.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Deadline {
    from: HolderInstant,
    after: Duration,
}

impl Deadline {
    /// `after` from the moment `from`.
    pub fn new(from: HolderInstant, after: Duration) -> Deadline {
        Deadline { from, after }
    }

    /// What is left at `now`; zero if it has passed.
    pub fn remaining(&self, now: HolderInstant) -> Duration {
        self.after.saturating_sub(now.since(self.from))
    }

    /// Whether it has passed.
    pub fn is_over(&self, now: HolderInstant) -> bool {
        self.remaining(now).is_zero()
    }

    /// The one that leaves more time at `now`: a late answer to an early request doesn't shorten anything.
    pub fn later(self, other: Deadline, now: HolderInstant) -> Deadline {
        if other.remaining(now) > self.remaining(now) { other } else { self }
    }

    /// Another moment, counted from the same start: `share` makes its distance from this one's.
    pub fn at_share(&self, share: impl FnOnce(Duration) -> Duration) -> Deadline {
        Deadline { from: self.from, after: share(self.after) }
    }
}

#[cfg(test)]
mod tests;
