//! Randomness from outside, behind a trait so that a test can replace it.

use rand::TryRng;

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
