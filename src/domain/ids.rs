//! The names and numbers of the domain. Once built, each is valid for good: the checks are here, and nowhere else.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

/// Why a text is not the id that it was meant to be; says what would be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {rule}")]
pub struct InvalidId {
    /// What was being read, in the words of the public contract.
    pub what: &'static str,
    /// What it has to look like.
    pub rule: &'static str,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and keeps it.
            pub fn new(text: &str) -> Result<Self, InvalidId> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) { Ok(Self(Arc::from(text))) } else { Err(InvalidId { what: $what, rule: $rule }) }
            }

            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        // Bytes from a disk or a peer pass the same check as those from a client.
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

text_id!(
    /// What contenders campaign for. The wire calls it `election_id`.
    RoomId,
    "election_id",
    "8 to 64 characters of A-Z a-z 0-9 _ -",
    |text| (8..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
);

text_id!(
    /// Who campaigns. The wire calls it `candidate_id`. Two contenders with one name are still two: only the
    /// lease secret tells the holder.
    ContenderId,
    "candidate_id",
    "1 to 64 characters of A-Z a-z 0-9 . _ : @ -",
    |text| (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:@-".contains(&b))
);

text_id!(
    /// A note that the holder shows to everybody, such as its address.
    Metadata,
    "metadata",
    "a string of at most 1,024 characters and 4,096 bytes",
    |text| text.len() <= 4096 && text.chars().count() <= 1024
);

/// A number that is higher for every grant than for every earlier one, in all rooms. The wire calls it `term`.
///
/// Downstream systems keep the highest they have seen and refuse lower ones (Kleppmann, "How to do
/// distributed locking", 2016), so that a holder who doesn't know yet that it lost can do no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FencingToken(pub u64);

/// The highest fencing token: 2^53 - 1, so that JavaScript reads each exactly.
pub const fn fencing_token_max() -> FencingToken {
    FencingToken((1 << 53) - 1)
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// SHA-256 of a lease secret: all that is ever stored or sent between nodes of it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    /// Equality in a time that doesn't depend on where the two differ.
    pub fn matches(&self, other: &SecretHash) -> bool {
        use subtle::ConstantTimeEq;
        self.0.ct_eq(&other.0).into()
    }
}

// Even a hash stays out of traces: who has it could test guesses of a weak idempotency key against it.
impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// Random bytes stored with a lease, from which, and from the caller's key, its secret is made again.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nonce(pub [u8; 16]);

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(…)")
    }
}

#[cfg(test)]
mod tests;
