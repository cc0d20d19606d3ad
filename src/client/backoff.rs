//! How long to pause before another try. The pauses are random, so that clients don't come back all at once.

use std::time::Duration;

use crate::random::{SystemRandom, random_bytes};

/// The shortest pause, and the base of the first one.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause between two rounds.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Pauses that grow with each failure. Each is drawn between [`PAUSE_MIN`] and three times the pause before it
/// ("decorrelated jitter", AWS Architecture Blog, 2015).
pub(super) struct Backoff(Duration);

impl Backoff {
    pub fn new() -> Backoff {
        Backoff(PAUSE_MIN)
    }

    /// The next pause. `fraction` chooses it within its limits.
    pub fn next(&mut self, fraction: Fraction) -> Duration {
        let upper = (self.0 * 3).min(PAUSE_MAX);
        self.0 = PAUSE_MIN + upper.saturating_sub(PAUSE_MIN) * fraction.0 / 1_000;
        self.0
    }
}

/// A number of thousandths, 0 to 1,000.
#[derive(Clone, Copy)]
pub(super) struct Fraction(u32);

impl Fraction {
    pub fn random() -> Fraction {
        let random = u32::from(u16::from_le_bytes(random_bytes(&SystemRandom)));
        Fraction(random * 1_000 / u32::from(u16::MAX))
    }

    /// `duration`, changed by up to a tenth in either direction.
    pub fn jitter(self, duration: Duration) -> Duration {
        duration * 9 / 10 + duration * self.0 / 5_000
    }

    /// Between nothing and a tenth of `duration`.
    pub fn up_to_a_tenth_of(self, duration: Duration) -> Duration {
        duration * self.0 / 10_000
    }
}

#[cfg(test)]
mod tests;
