//! Checks that a caller may use the election routes.

use axum::http::{HeaderMap, header};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::error::HttpError;
use super::settings::HttpSettings;

/// The access tokens, and whether elections are switched on.
pub struct Access {
    elections_enabled: bool,
    /// SHA-256 of each access token. Hashes have one length, so a comparison reveals nothing about a token's length.
    access_token_hashes: Vec<[u8; 32]>,
}

impl Access {
    /// The rules in these settings. Without access tokens, every caller has access.
    pub fn new(settings: &HttpSettings) -> Self {
        let hash = |text: &str| Sha256::digest(text.as_bytes()).into();
        Self {
            elections_enabled: settings.elections_enabled,
            access_token_hashes: settings.access_tokens.iter().map(|text| hash(text.expose_secret())).collect(),
        }
    }

    /// Checks that these headers give access, and that elections are switched on.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        if !self.access_token_hashes.is_empty() {
            let access_token = bearer(headers)?;
            let hash: [u8; 32] = Sha256::digest(access_token).into();
            // All hashes are compared, so the time does not reveal which one matched.
            let known = self.access_token_hashes.iter().fold(Choice::from(0), |known, one| known | one.ct_eq(&hash));
            // An empty access token in the settings must not give access to everybody.
            if access_token.is_empty() || !bool::from(known) {
                return Err(HttpError::AccessTokenWrong);
            }
        }
        if self.elections_enabled { Ok(()) } else { Err(HttpError::ElectionsOff) }
    }
}

fn bearer(headers: &HeaderMap) -> Result<&[u8], HttpError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(HttpError::AccessTokenMissing)?.as_bytes();
    if values.next().is_some() {
        return Err(HttpError::AccessTokenWrong);
    }
    match value.split_at_checked(b"bearer".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer") && rest.first().is_none_or(|b| *b == b' ') => {
            Ok(rest.trim_ascii())
        }
        _ => Err(HttpError::AccessTokenMissing),
    }
}
