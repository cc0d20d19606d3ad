//! The request bodies.
//!
//! They are read field by field, because the error messages of serde's derive quote the input, which can hold a secret.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
#[cfg(feature = "server")]
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::leader_token::LeaderToken;
use crate::domain::{ContenderId, InvalidId, LeaseDuration, Metadata};

/// The longest wait that a campaign can ask for, in seconds. The OpenAPI attribute below repeats it.
pub const WAIT_SECONDS_MAX: u8 = 60;

/// A candidate wants to lead. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct CampaignRequest {
    /// The candidate's name.
    pub candidate_id: ContenderId,
    /// How long the lease lasts without a renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<LeaseDuration>,
    /// A note that everybody can read beside the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// How long the server may wait for the room before it answers that another candidate leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(maximum = 60, default = 0))]
    pub wait_seconds: Option<u8>,
}

impl CampaignRequest {
    /// Reads a request body.
    pub fn from_json(body: &[u8]) -> Result<Self, InvalidRequest> {
        let mut fields = Fields::read(body)?;
        Ok(Self {
            candidate_id: ContenderId::new(&fields.required_text("candidate_id")?)?,
            ttl_seconds: fields.ttl_seconds()?,
            metadata: fields.metadata()?,
            wait_seconds: fields.wait_seconds()?,
        })
    }

    /// The requested duration of the lease, or the default.
    pub fn lease_duration(&self) -> LeaseDuration {
        self.ttl_seconds.unwrap_or(LeaseDuration::DEFAULT)
    }

    /// How long to wait for an occupied room.
    pub fn wait(&self) -> Duration {
        Duration::from_secs(self.wait_seconds.unwrap_or(0).into())
    }
}

/// A leader wants to keep its lease. Unknown fields are ignored.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct RenewRequest {
    /// The proof that the caller leads.
    pub leader_token: LeaderToken,
    /// A new TTL. Without it, the lease keeps its TTL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<LeaseDuration>,
    /// New metadata. Without it, the lease keeps its metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl RenewRequest {
    /// Reads a request body.
    pub fn from_json(body: &[u8]) -> Result<Self, InvalidRequest> {
        let mut fields = Fields::read(body)?;
        Ok(Self {
            leader_token: fields.leader_token()?,
            ttl_seconds: fields.ttl_seconds()?,
            metadata: fields.metadata()?,
        })
    }
}

/// A leader wants to stop leading. Unknown fields are ignored.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct ResignRequest {
    /// The proof that the caller leads.
    pub leader_token: LeaderToken,
}

impl ResignRequest {
    /// Reads a request body.
    pub fn from_json(body: &[u8]) -> Result<Self, InvalidRequest> {
        Ok(Self { leader_token: Fields::read(body)?.leader_token()? })
    }
}

/// The fault of a request. The texts never quote the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// The TTL is a whole number, and out of range.
    #[error("ttl_seconds must be {} to {}", LeaseDuration::SECONDS_MIN, LeaseDuration::SECONDS_MAX)]
    Ttl,
    /// Any other fault. The text names the field and its rule.
    #[error("{0}")]
    Input(String),
}

impl From<InvalidId> for InvalidRequest {
    fn from(invalid: InvalidId) -> Self {
        Self::Input(invalid.to_string())
    }
}

/// The fields of a request body. A field that is `null` counts as absent.
struct Fields {
    values: Map<String, Value>,
    /// Fields that occur twice. JSON readers differ in whether the first or the last value counts, so a proxy could
    /// understand such a request differently from this server.
    given_twice: BTreeSet<String>,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnObject;

        impl<'de> Visitor<'de> for AnObject {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields { values: Map::new(), given_twice: BTreeSet::new() };
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if fields.values.insert(name.clone(), value).is_some() {
                        fields.given_twice.insert(name);
                    }
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(AnObject)
    }
}

impl Fields {
    fn read(body: &[u8]) -> Result<Self, InvalidRequest> {
        if body.is_empty() {
            return Err(input("the body is empty; send a JSON object"));
        }
        match serde_json::from_slice(body) {
            Ok(fields) => Ok(fields),
            Err(error) if error.is_data() => Err(input("the body must be a JSON object, in braces")),
            Err(error) => Err(InvalidRequest::Input(format!(
                "the body is not valid JSON; the first error is at line {}, column {}",
                error.line(),
                error.column()
            ))),
        }
    }

    fn take(&mut self, name: &str) -> Result<Option<Value>, InvalidRequest> {
        if self.given_twice.contains(name) {
            return Err(InvalidRequest::Input(format!("{name} must be given only once")));
        }
        Ok(self.values.remove(name).filter(|value| !value.is_null()))
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, InvalidRequest> {
        match self.take(name)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(InvalidRequest::Input(format!("{name} must be a string"))),
        }
    }

    fn required_text(&mut self, name: &str) -> Result<String, InvalidRequest> {
        self.text(name)?.ok_or_else(|| InvalidRequest::Input(format!("{name} is required")))
    }

    /// A whole number in any notation: `30`, `30.0` and `3e1` are equal in JSON. A number that is too large for `i64`
    /// becomes the largest one, which every limit excludes.
    fn whole_number(&mut self, name: &str) -> Result<Option<i64>, InvalidRequest> {
        let Some(value) = self.take(name)? else {
            return Ok(None);
        };
        let whole = match (value.as_i64(), value.as_f64()) {
            (Some(whole), _) => Some(whole),
            // `as` saturates at the ends of `i64`.
            (None, Some(float)) if float.fract() == 0.0 => Some(float as i64),
            _ => None,
        };
        whole.map(Some).ok_or_else(|| InvalidRequest::Input(format!("{name} must be a whole number")))
    }

    fn ttl_seconds(&mut self) -> Result<Option<LeaseDuration>, InvalidRequest> {
        let Some(seconds) = self.whole_number("ttl_seconds")? else {
            return Ok(None);
        };
        let duration = u64::try_from(seconds).ok().and_then(LeaseDuration::from_secs);
        duration.map(Some).ok_or(InvalidRequest::Ttl)
    }

    fn wait_seconds(&mut self) -> Result<Option<u8>, InvalidRequest> {
        let Some(seconds) = self.whole_number("wait_seconds")? else {
            return Ok(None);
        };
        let seconds = u8::try_from(seconds).ok().filter(|seconds| *seconds <= WAIT_SECONDS_MAX);
        seconds.map(Some).ok_or_else(|| InvalidRequest::Input(format!("wait_seconds must be 0 to {WAIT_SECONDS_MAX}")))
    }

    fn metadata(&mut self) -> Result<Option<Metadata>, InvalidRequest> {
        Ok(self.text("metadata")?.map(|text| Metadata::new(&text)).transpose()?)
    }

    fn leader_token(&mut self) -> Result<LeaderToken, InvalidRequest> {
        Ok(LeaderToken::new(Zeroizing::new(self.required_text("leader_token")?)))
    }
}

fn input(text: &str) -> InvalidRequest {
    InvalidRequest::Input(text.to_owned())
}

#[cfg(test)]
mod tests;
