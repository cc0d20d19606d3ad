//! The names and numbers of the domain. All checks are here: a value that exists is valid.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

/// A text that breaks the rule for its kind of id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {rule}")]
pub struct InvalidId {
    /// The kind of id, in the words of the HTTP interface.
    pub what: &'static str,
    /// The rule.
    pub rule: &'static str,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text.
            pub fn new(text: &str) -> Result<Self, InvalidId> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) { Ok(Self(Arc::from(text))) } else { Err(InvalidId { what: $what, rule: $rule }) }
            }

            /// The text.
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

        // Bytes from a disk or a peer pass the same check as a client's text.
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

text_id!(
    /// The name of a room. The HTTP interface calls it `election_id`.
    RoomId,
    "election_id",
    "8 to 64 characters of A-Z a-z 0-9 _ -",
    |text| (8..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
);

text_id!(
    /// The name of a contender. The HTTP interface calls it `candidate_id`. Two contenders may have the same name:
    /// only the lease secret proves which one is the holder.
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

/// A number that is higher for each grant than for every earlier grant, in all rooms. The HTTP interface calls it
/// `term`.
///
/// A downstream system remembers the highest token that it has seen and rejects lower ones (Kleppmann, "How to do
/// distributed locking", 2016). So a holder that does not know yet that its lease has ended can do no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FencingToken(pub u64);

/// The highest fencing token: 2^53 - 1. JavaScript reads every number up to it exactly.
pub const fn fencing_token_max() -> FencingToken {
    FencingToken((1 << 53) - 1)
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// SHA-256 of a lease secret. Disks and other nodes see this hash, never the secret.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    /// Compares in constant time, so that the time tells nothing about the secret.
    pub fn matches(&self, other: &SecretHash) -> bool {
        use subtle::ConstantTimeEq;
        self.0.ct_eq(&other.0).into()
    }
}

// The hash stays out of traces as well: with it, somebody could test guesses of a weak idempotency key.
impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// Random bytes stored with a lease. Together with the caller's key they give the lease secret again.
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
