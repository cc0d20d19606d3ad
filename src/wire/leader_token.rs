//! The proof that a caller holds a room.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

/// The holder's proof, as text. It appears in no debug output. Its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct LeaderToken(Zeroizing<String>);

impl LeaderToken {
    /// The token with this text.
    pub fn new(text: Zeroizing<String>) -> Self {
        Self(text)
    }

    /// The text. It goes into a request or response body, and nowhere else.
    pub fn expose_text(&self) -> &str {
        &self.0
    }
}

impl Serialize for LeaderToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for LeaderToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Zeroizing::new(text)))
    }
}

impl fmt::Debug for LeaderToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaderToken(…)")
    }
}

#[cfg(test)]
mod tests;
