//! The cluster secret and its proof.

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The secret that all nodes of one cluster share. It is never sent. A keyed hash of a fixed text proves that a node
/// knows it.
#[derive(Clone)]
pub struct ClusterSecret(SecretString);

impl ClusterSecret {
    /// The secret that the operator set.
    pub fn new(text: SecretString) -> Self {
        Self(text)
    }

    /// The value of the `Authorization` header that proves knowledge of the secret.
    pub(super) fn proof(&self) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.expose_secret().as_bytes()).expect("HMAC takes a key of any length");
        mac.update(b"quorate peer request 1");
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        format!("Bearer {}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    /// Whether an `Authorization` header proves knowledge of the secret. Compares in constant time.
    pub fn is_proven_by(&self, authorization: Option<&[u8]>) -> bool {
        authorization.is_some_and(|given| self.proof().as_bytes().ct_eq(given).into())
    }
}

#[cfg(test)]
mod tests;
