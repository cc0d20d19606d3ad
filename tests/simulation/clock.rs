//! A node's clocks: one that runs at a rate of its own from an origin of its own, and a wall clock that jumps.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use quorate::clock::{Clock, ClockReading};
use quorate::domain::WallTime;

/// Where simulated wall clocks begin: 2026-01-01, in milliseconds.
const EPOCH: u64 = 1_767_225_600_000;

/// See the module. A restarted process has a new one, as a new process has.
pub struct SimulatedClock {
    origin: u64,
    /// How much faster than real time it runs, in millionths.
    rate_ppm: i64,
    /// While it stands still, when it began to.
    stopped_at: AtomicU64,
    /// How long it has stood still in all.
    stood: AtomicU64,
    wall_offset_ms: std::sync::Arc<AtomicI64>,
}

/// Microseconds since the simulation began, as the host that runs knows it.
pub fn simulated_micros() -> u64 {
    let elapsed: Duration = turmoil::sim_elapsed().expect("asked for by simulated code");
    u64::try_from(elapsed.as_micros()).expect("simulations are short")
}

pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("simulations are short")
}

impl SimulatedClock {
    pub fn new(origin: u64, rate_ppm: i64, wall_offset_ms: std::sync::Arc<AtomicI64>) -> Self {
        Self { origin, rate_ppm, stopped_at: AtomicU64::new(u64::MAX), stood: AtomicU64::new(0), wall_offset_ms }
    }

    /// Stands still from now on, as in a machine that is suspended.
    pub fn stop(&self, now: u64) {
        self.stopped_at.store(now, Ordering::Relaxed);
    }

    /// Runs on.
    pub fn go_on(&self, now: u64) {
        let stopped_at = self.stopped_at.swap(u64::MAX, Ordering::Relaxed);
        if stopped_at != u64::MAX {
            self.stood.fetch_add(now - stopped_at, Ordering::Relaxed);
        }
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> ClockReading {
        let now = simulated_micros().min(self.stopped_at.load(Ordering::Relaxed));
        let run = i128::from(now - self.stood.load(Ordering::Relaxed)) * i128::from(1_000_000 + self.rate_ppm);
        ClockReading(self.origin + u64::try_from(run / 1_000_000_000).expect("time only goes on"))
    }

    fn wall_time(&self) -> WallTime {
        let now = EPOCH + simulated_micros() / 1_000;
        WallTime(now.saturating_add_signed(self.wall_offset_ms.load(Ordering::Relaxed)))
    }
}
