//! How long to wait before asking again, each client for a different time.

use std::time::Duration;

use crate::random::{SystemRandom, random_bytes};

/// The first pause after a whole round of failures.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause between two rounds.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Pauses that grow and that differ between callers, so that a herd spreads out: each is a random share of three
/// times the one before ("decorrelated jitter", AWS Architecture Blog, 2015).
pub(super) struct Backoff(Duration);

impl Backoff {
    pub fn new() -> Backoff {
        Backoff(PAUSE_MIN)
    }

    /// `fraction` is 0 to 1,000.
    pub fn next(&mut self, fraction: Fraction) -> Duration {
        let upper = (self.0 * 3).min(PAUSE_MAX);
        self.0 = PAUSE_MIN + upper.saturating_sub(PAUSE_MIN) * fraction.0 / 1_000;
        self.0
    }
}

/// A random number of thousandths, 0 to 1,000.
#[derive(Clone, Copy)]
pub(super) struct Fraction(u32);

impl Fraction {
    pub fn random() -> Fraction {
        let random = u32::from(u16::from_le_bytes(random_bytes(&SystemRandom)));
        Fraction(random * 1_000 / u32::from(u16::MAX))
    }

    /// `duration`, give or take up to a tenth of it.
    pub fn jitter(self, duration: Duration) -> Duration {
        duration * 9 / 10 + duration * self.0 / 5_000
    }

    /// Up to a tenth of `duration`.
    pub fn up_to_a_tenth_of(self, duration: Duration) -> Duration {
        duration * self.0 / 10_000
    }
}

#[cfg(test)]
mod tests;
