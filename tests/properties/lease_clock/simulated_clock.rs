//! The clock of a node, with all errors that a real one may have.

use quorate::clock::ClockReading;
use rand::RngExt;
use rand::rngs::StdRng;

use super::watch::{CLOCK_ERROR_MAX, MILLISECOND, MINUTE, Moment};

/// The most that one step of the crate's clock may add (`SystemClock::STEP_MAX`).
const STEP_MAX: u64 = 200 * MILLISECOND;

/// It has a wrong rate and a random origin. A stall counts as one step, of at most [`STEP_MAX`].
pub struct SimulatedClock {
    origin: u64,
    rate_ppm: i64,
    counted: u64,
    counted_until: Moment,
    pub stalled_until: Moment,
}

impl SimulatedClock {
    pub fn start(random: &mut StdRng, at: Moment) -> SimulatedClock {
        let error_ppm = (CLOCK_ERROR_MAX * 1e6) as i64;
        SimulatedClock {
            origin: random.random_range(0..1_000 * MINUTE),
            rate_ppm: random.random_range(-error_ppm..=error_ppm),
            counted: 0,
            counted_until: at,
            stalled_until: at,
        }
    }

    /// The clock of the next process on the same machine. It has the same rate and another origin.
    pub fn start_anew(&self, random: &mut StdRng, at: Moment) -> SimulatedClock {
        SimulatedClock { rate_ppm: self.rate_ppm, ..SimulatedClock::start(random, at) }
    }

    pub fn read(&mut self, now: Moment) -> ClockReading {
        let stalled = self.stalled_until.saturating_sub(self.counted_until);
        let awake = (now - self.counted_until) - stalled;
        self.counted += stalled.min(STEP_MAX) + awake;
        self.counted_until = now;
        let advanced = i128::from(self.counted) * i128::from(1_000_000 + self.rate_ppm) / 1_000_000;
        ClockReading((self.origin + advanced as u64) / MILLISECOND)
    }
}
