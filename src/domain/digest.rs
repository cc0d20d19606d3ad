//! A digest of the replicated state.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::ids::RoomId;
use super::lease::Lease;

/// A short value for comparing the states of two nodes.
///
/// Equal states have equal digests. Different states have different ones, except with a probability of 2^-128. It is a
/// sum over the leases. So a change of one lease updates it without reading the others, and their order is irrelevant.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StateDigest(u128);

impl StateDigest {
    /// Adds a lease.
    pub fn add(&mut self, room: &RoomId, lease: &Lease) {
        self.0 = self.0.wrapping_add(digest_of(&(room, lease)));
    }

    /// Takes a lease out that was added before.
    pub fn remove(&mut self, room: &RoomId, lease: &Lease) {
        self.0 = self.0.wrapping_sub(digest_of(&(room, lease)));
    }

    /// The digest of the leases together with that of the rest of the state.
    pub fn with(self, rest: &impl Serialize) -> StateDigest {
        StateDigest(self.0.wrapping_add(digest_of(rest)))
    }
}

impl fmt::Display for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The first 128 bits of the SHA-256 of a canonical form: serde_json writes a struct's fields in their order.
fn digest_of(value: &impl Serialize) -> u128 {
    let mut hash = Sha256::new();
    serde_json::to_writer(&mut HashWriter(&mut hash), value)
        .expect("a domain value is always JSON, and hashing cannot fail");
    let bytes: [u8; 32] = hash.finalize().into();
    u128::from_be_bytes(bytes[..16].try_into().expect("16 of 32 bytes"))
}

struct HashWriter<'a>(&'a mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
