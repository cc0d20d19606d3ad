//! Who campaigns.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::random::{SystemRandom, random_bytes};

/// A name that no other process has.
pub fn own_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(|c| c.is_ascii_alphanumeric() || ".-_".contains(*c)).take(32).collect();
    let random = URL_SAFE_NO_PAD.encode(random_bytes::<6>(&SystemRandom));
    format!("{host}:{}:{random}", std::process::id())
}

#[cfg(test)]
mod tests;
