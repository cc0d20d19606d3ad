//! Time from outside, and the licence to stamp with it.
//!
//! [`Clock`] is the node's own time. It only measures how long something took. [`LeaseClock`] turns it into stamps of
//! log time. Below is the rule for stamps, and what goes wrong without each part. A model of 4,000 random schedules
//! broke every simpler rule. `tests/properties/lease_clock` runs this code in that model.
//!
//! 1. A raft leader stamps only after an entry of its own raft term was applied here. Its log may end in entries of
//!    earlier raft leaders that it hasn't applied yet. Their stamps may be later than every stamp that it has applied.
//! 2. It then takes a [`Licence`]: this raft term, log time now, the node's clock now. A stamp is the licence's log
//!    time plus the time that the clock has advanced since.
//! 3. The licence is never merged, by max, with an older one or with a clock that ran on meanwhile. If A leads, then B,
//!    then A again, A's old reading may be ahead of B's. Then leases that B granted would end early.
//! 4. `apply` refuses a command whose stamp has another raft term than its log entry.
//!
//! So log time can run slow: it loses the time between the last entry of one reign and the first entry of the next. It
//! never runs fast.

#![allow(clippy::disallowed_methods, reason = "this file is the node's clock")]

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use crate::domain::{LogTime, Stamp, WallTime, millis};

/// A reading of a node's own clock: milliseconds since some moment in that process. Only differences have a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ClockReading(pub u64);

impl ClockReading {
    /// The time from `earlier` to this reading, or zero if `earlier` is later.
    pub fn since(self, earlier: ClockReading) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// The two clocks of a node. The simulation has clocks of its own.
pub trait Clock: Send + Sync + 'static {
    /// The node's own clock. It never goes back, and never runs faster than real time.
    fn now(&self) -> ClockReading;
    /// The wall clock, for display and for the floor of the fencing tokens. It never decides when something ends.
    fn wall_time(&self) -> WallTime;
}

/// The clock of a real machine: a counter that advances by the smaller step of two kernel clocks.
///
/// `CLOCK_MONOTONIC_RAW` is wrong if the oscillator is, but NTP never makes it faster. `CLOCK_MONOTONIC` follows NTP,
/// which corrects a bad oscillator. The smaller step of the two is the safe one, because log time must never run fast.
///
/// One step adds at most [`SystemClock::STEP_MAX`]. Otherwise a raft leader that was stopped for a minute would end
/// every lease when it runs again, before the holders could renew (etcd 15247).
pub struct SystemClock {
    counter: Mutex<Counter>,
}

struct Counter {
    total: Duration,
    raw: Duration,
    monotonic: Duration,
}

impl SystemClock {
    /// The most that one step may add to the counter.
    pub const STEP_MAX: Duration = Duration::from_millis(200);
    /// How often a thread makes a step, so that [`Self::STEP_MAX`] cuts nothing off while nobody reads the clock.
    const FEED_EVERY: Duration = Duration::from_millis(50);

    /// Starts the clock, and a thread that makes steps for as long as the clock is in use.
    pub fn start() -> std::io::Result<Arc<SystemClock>> {
        let (raw, monotonic) = kernel_clocks();
        let clock = Arc::new(SystemClock { counter: Mutex::new(Counter { total: Duration::ZERO, raw, monotonic }) });
        let fed = Arc::downgrade(&clock);
        std::thread::Builder::new().name("clock".into()).spawn(move || {
            while let Some(clock) = fed.upgrade() {
                clock.step();
                drop(clock);
                std::thread::sleep(Self::FEED_EVERY);
            }
        })?;
        Ok(clock)
    }

    fn step(&self) -> Duration {
        let mut counter = self.counter.lock();
        let (raw, monotonic) = kernel_clocks();
        counter.advance(raw, monotonic);
        counter.total
    }
}

impl Counter {
    fn advance(&mut self, raw: Duration, monotonic: Duration) {
        // On a broken host a kernel clock can go back. Such a step adds nothing.
        let step = raw.saturating_sub(self.raw).min(monotonic.saturating_sub(self.monotonic));
        self.total += step.min(SystemClock::STEP_MAX);
        (self.raw, self.monotonic) = (raw, monotonic);
    }
}

impl Clock for SystemClock {
    fn now(&self) -> ClockReading {
        ClockReading(millis(self.step()))
    }

    fn wall_time(&self) -> WallTime {
        wall_time_now()
    }
}

/// A wall clock with an earlier time is not set: on 30 November 2026 this program was being written.
pub const WALL_TIME_MIN: WallTime = WallTime(1_796_000_000_000);

/// The wall clock of the machine, or 1970 if it shows an earlier time. It is for names and displays.
pub fn wall_time_now() -> WallTime {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    WallTime(millis(since_1970))
}

fn kernel_clocks() -> (Duration, Duration) {
    let read = |id| {
        let time = clock_gettime(id);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    (read(ClockId::MonotonicRaw), read(ClockId::Monotonic))
}

/// A raft leader's right to stamp, valid for one raft term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Licence {
    raft_term: u64,
    log_time: LogTime,
    taken_at: ClockReading,
}

impl Licence {
    fn reading(&self, now: ClockReading) -> LogTime {
        self.log_time.after(now.since(self.taken_at))
    }
}

/// Makes the stamps for the commands of a raft leader. The replica reports every applied entry to it.
#[derive(Debug, Default)]
pub struct LeaseClock {
    /// The raft term of the last entry applied by this process.
    applied_raft_term: Option<u64>,
    log_time: LogTime,
    log_time_seen_at: ClockReading,
    licence: Option<Licence>,
}

impl LeaseClock {
    /// Must be called after each entry or batch of entries is applied.
    pub fn after_apply(&mut self, entry_raft_term: u64, log_time: LogTime, now: ClockReading) {
        self.applied_raft_term = Some(entry_raft_term);
        if log_time > self.log_time {
            self.log_time_seen_at = now;
        }
        self.log_time = log_time;
        self.licence = match self.licence {
            // The log is ahead of the licence. Log time never goes back, so the licence has to catch up.
            Some(licence) if licence.raft_term == entry_raft_term && licence.reading(now) < log_time => {
                Some(Licence { raft_term: entry_raft_term, log_time, taken_at: now })
            }
            Some(licence) if licence.raft_term == entry_raft_term => Some(licence),
            _ => None,
        };
    }

    /// Must be called after the whole state was replaced, by a snapshot or from the disk.
    pub fn after_restore(&mut self, log_time: LogTime, now: ClockReading) {
        *self = LeaseClock { applied_raft_term: None, log_time, log_time_seen_at: now, licence: None };
    }

    /// A stamp for a command that this node, as raft leader of `raft_term`, is about to propose.
    ///
    /// `None` until an entry of that raft term has been applied here.
    pub fn stamp(&mut self, raft_term: u64, now: ClockReading) -> Option<Stamp> {
        if self.applied_raft_term != Some(raft_term) {
            return None;
        }
        let log_time = self.log_time;
        let licence = *self.licence.get_or_insert(Licence { raft_term, log_time, taken_at: now });
        Some(Stamp { log_time: licence.reading(now), raft_term })
    }

    /// An estimate of log time now, for display. It is never ahead of the log time of the raft leader.
    pub fn estimate(&self, now: ClockReading) -> LogTime {
        self.log_time.after(now.since(self.log_time_seen_at))
    }
}

#[cfg(test)]
mod tests;
