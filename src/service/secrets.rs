//! Lease secrets: how they are made, checked and recognised, so that none is ever stored.
//!
//! ```text
//! key    = the caller's Idempotency-Key, or 32 random bytes
//! nonce  = 16 random bytes, stored with the lease
//! secret = HMAC-SHA-256(key, label | room | contender | nonce)     the caller's proof that it holds the room
//! hash   = SHA-256(secret)                                         stored with the lease
//! ```
//!
//! A caller whose answer was lost asks again with the same key. The key and the lease's nonce give the same secret. If
//! the hash of that secret is the lease's, the caller *is* the holder. So no table of keys is needed. Any node can
//! recognise the caller, for as long as the lease lives.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::domain::{ContenderId, InvalidId, Lease, Nonce, RoomId, SecretHash};
use crate::random::{Random, random_bytes};

const LABEL: &[u8] = b"quorate lease secret 1";

/// A holder's proof for renewals and the resignation. Only one response and the holder's memory contain
/// its text.
#[derive(Clone)]
pub struct LeaseSecret(Zeroizing<[u8; 32]>);

impl LeaseSecret {
    /// Reads the 43 characters of base64url that the HTTP interface calls `leader_token`.
    pub fn from_text(text: &str) -> Result<Self, InvalidId> {
        let invalid = InvalidId { what: "leader_token", rule: "43 characters of base64url" };
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid.clone())?);
        let bytes = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| invalid)?;
        Ok(Self(Zeroizing::new(bytes)))
    }

    /// The text for the holder. It may go into a response body and nowhere else.
    pub fn expose_text(&self) -> Zeroizing<String> {
        Zeroizing::new(URL_SAFE_NO_PAD.encode(self.0.as_slice()))
    }

    /// The hash that is stored.
    pub fn hash(&self) -> SecretHash {
        SecretHash(Sha256::digest(self.0.as_slice()).into())
    }
}

impl fmt::Debug for LeaseSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseSecret(…)")
    }
}

/// A secret of the caller. Two campaign requests with the same key are one campaign.
#[derive(Clone)]
pub struct IdempotencyKey(Zeroizing<Vec<u8>>);

impl IdempotencyKey {
    /// Reads an `Idempotency-Key` header: 16 to 128 visible ASCII characters.
    pub fn from_header(bytes: &[u8]) -> Result<Self, InvalidId> {
        if (16..=128).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic) {
            Ok(Self(Zeroizing::new(bytes.to_vec())))
        } else {
            Err(InvalidId { what: "Idempotency-Key", rule: "16 to 128 visible ASCII characters" })
        }
    }

    /// A key for a caller without one.
    pub fn generate(random: &dyn Random) -> Self {
        Self(Zeroizing::new(random_bytes::<32>(random).to_vec()))
    }

    /// The secret that this key gives for a campaign with this nonce.
    pub fn secret_for(&self, room: &RoomId, contender: &ContenderId, nonce: Nonce) -> LeaseSecret {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        for part in [LABEL, room.as_str().as_bytes(), contender.as_str().as_bytes(), &nonce.0] {
            // The length comes first, so that no two lists of parts give the same bytes.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        LeaseSecret(Zeroizing::new(mac.finalize().into_bytes().into()))
    }

    /// The secret of `lease`, if it was granted to this key and contender.
    pub fn recognise(&self, room: &RoomId, contender: &ContenderId, lease: &Lease) -> Option<LeaseSecret> {
        let secret = self.secret_for(room, contender, lease.nonce);
        (lease.holder == *contender && secret.hash().matches(&lease.secret_hash)).then_some(secret)
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey(…)")
    }
}

#[cfg(test)]
mod tests;
