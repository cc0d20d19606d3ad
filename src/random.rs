//! Random numbers: secret ones behind a trait that a test can replace, and others that a test can seed.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this file is where chance comes from")]

use std::cell::RefCell;
use std::convert::Infallible;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng, TryRng};

/// A source of bytes that nobody can predict.
pub trait Random: Send + Sync + 'static {
    /// Fills `bytes` with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]);
}

/// The random number generator of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        rand::rngs::SysRng
            .try_fill_bytes(bytes)
            .expect("the operating system must provide random bytes, for secrets depend on them");
    }
}

/// `N` unpredictable bytes.
pub fn random_bytes<const N: usize>(random: &dyn Random) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes);
    bytes
}

thread_local! {
    static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// Seeds [`ThreadRandom`] on this thread, so that a simulation can repeat a run. Secrets are not affected.
pub fn seed_thread(seed: u64) {
    SEEDED.set(Some(StdRng::seed_from_u64(seed)));
}

/// Random numbers that need not be secret, such as how long to wait before a raft election.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadRandom;

impl ThreadRandom {
    fn with<T>(draw: impl FnOnce(&mut dyn Rng) -> T) -> T {
        SEEDED.with_borrow_mut(|seeded| match seeded {
            Some(seeded) => draw(seeded),
            None => draw(&mut rand::rng()),
        })
    }
}

impl TryRng for ThreadRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(Self::with(|random| random.next_u32()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(Self::with(|random| random.next_u64()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        Self::with(|random| random.fill_bytes(bytes));
        Ok(())
    }
}
