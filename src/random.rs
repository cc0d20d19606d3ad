//! Randomness from outside, behind a trait so that a test can replace it.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this file is where chance comes from")]

use std::cell::RefCell;
use std::convert::Infallible;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng, TryRng};

/// Where unpredictable bytes come from.
pub trait Random: Send + Sync + 'static {
    /// Fills `bytes` with bytes that nobody can guess.
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        rand::rngs::SysRng.try_fill_bytes(bytes).expect("an operating system without randomness cannot keep a secret");
    }
}

/// `N` random bytes.
pub fn random_bytes<const N: usize>(random: &dyn Random) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes);
    bytes
}

thread_local! {
    static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// Makes all that [`ThreadRandom`] gives on this thread, from now on, follow from a seed. A simulation does so.
pub fn seed_thread(seed: u64) {
    SEEDED.set(Some(StdRng::seed_from_u64(seed)));
}

/// For what nobody need be kept from guessing, such as how long to wait before a raft election.
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
