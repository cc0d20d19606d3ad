//! A node's clocks: a monotonic clock with its own origin and rate, and a wall clock that can jump.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use quorate::clock::{Clock, ClockReading};
use quorate::domain::WallTime;

/// Where simulated wall clocks begin: in December 2026, in milliseconds since 1970.
const EPOCH: u64 = 1_797_000_000_000;

/// The clocks of one process. A restarted process gets new ones.
pub struct SimulatedClock {
    origin: u64,
    /// How much faster than real time the clock runs, in millionths.
    rate_ppm: i64,
    /// When the clock stopped, while it stands still; `u64::MAX` while it runs.
    stopped_at: AtomicU64,
    /// How long the clock has stood still in all.
    stood: AtomicU64,
    wall_offset_ms: std::sync::Arc<AtomicI64>,
}

/// Microseconds since the simulation began. Only simulated code can ask for it.
pub fn simulated_micros() -> u64 {
    let elapsed: Duration = turmoil::sim_elapsed().expect("called by simulated code");
    u64::try_from(elapsed.as_micros()).expect("simulations are short")
}

/// A duration in microseconds.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("simulations are short")
}

impl SimulatedClock {
    pub fn new(origin: u64, rate_ppm: i64, wall_offset_ms: std::sync::Arc<AtomicI64>) -> Self {
        Self { origin, rate_ppm, stopped_at: AtomicU64::new(u64::MAX), stood: AtomicU64::new(0), wall_offset_ms }
    }

    /// Stops the clock from now on, as in a machine that is suspended.
    pub fn stop(&self, now: u64) {
        self.stopped_at.store(now, Ordering::Relaxed);
    }

    /// Lets the clock run again.
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
