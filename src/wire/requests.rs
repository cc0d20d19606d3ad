//! What clients ask.
//!
//! Requests are read field by field and not by serde's derive: its messages quote what they found, and what they
//! found may be somebody's secret.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
#[cfg(feature = "server")]
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::LeaderToken;
use crate::domain::{ContenderId, InvalidId, LeaseDuration, Metadata};

/// The longest that a campaign can ask to wait.
pub const WAIT_SECONDS_MAX: u8 = 60;

/// A wish to lead. Fields that are not listed are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct CampaignRequest {
    /// Who wants to lead.
    #[cfg_attr(feature = "server", schema(value_type = String, min_length = 1, max_length = 64,
        pattern = "^[A-Za-z0-9._:@-]{1,64}$", example = "worker-a"))]
    pub candidate_id: ContenderId,
    /// How long the lease lasts without a renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(value_type = Option<u16>, minimum = 5, maximum = 300, default = 30,
        example = 30))]
    pub ttl_seconds: Option<LeaseDuration>,
    /// What everybody shall see beside the name: at most 1,024 characters and 4,096 bytes of UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(value_type = Option<String>, max_length = 1024,
        example = "https://worker-a.internal:8443"))]
    pub metadata: Option<Metadata>,
    /// Hold the request until this candidate wins or so many seconds are over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(minimum = 0, maximum = 60, default = 0, example = 0))]
    pub wait_seconds: Option<u8>,
}

impl CampaignRequest {
    /// How long the lease lasts if the caller doesn't say.
    const TTL_SECONDS_DEFAULT: u64 = 30;

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

    /// The TTL that was asked for, or the default.
    pub fn lease_duration(&self) -> LeaseDuration {
        self.ttl_seconds.unwrap_or_else(|| {
            LeaseDuration::from_secs(Self::TTL_SECONDS_DEFAULT).expect("the default TTL is within the limits")
        })
    }

    /// How long to wait for a room that somebody holds.
    pub fn wait(&self) -> Duration {
        Duration::from_secs(self.wait_seconds.unwrap_or(0).into())
    }
}

/// A leader's wish to go on. Fields that are not listed are ignored.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct RenewRequest {
    /// The proof of being the leader.
    pub leader_token: LeaderToken,
    /// A new TTL; without it the lease keeps its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(value_type = Option<u16>, minimum = 5, maximum = 300, example = 30))]
    pub ttl_seconds: Option<LeaseDuration>,
    /// New metadata; without it the lease keeps its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(value_type = Option<String>, max_length = 1024,
        example = "https://worker-a.internal:8443"))]
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

/// A leader's wish to step down. Fields that are not listed are ignored.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct ResignRequest {
    /// The proof of being the leader.
    pub leader_token: LeaderToken,
}

impl ResignRequest {
    /// Reads a request body.
    pub fn from_json(body: &[u8]) -> Result<Self, InvalidRequest> {
        Ok(Self { leader_token: Fields::read(body)?.leader_token()? })
    }
}

/// What is wrong with a request. The texts name fields and rules, and never quote the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// The TTL is a whole number, but not one of those allowed.
    #[error("ttl_seconds must be 5 to 300")]
    Ttl,
    /// Everything else.
    #[error("{0}")]
    Input(String),
}

impl From<InvalidId> for InvalidRequest {
    fn from(invalid: InvalidId) -> Self {
        Self::Input(invalid.to_string())
    }
}

/// The fields of a request body. A field that is `null` counts as left out.
struct Fields {
    values: Map<String, Value>,
    /// What one reader takes by its first value and another by its last, so that two of them on the way could take one
    /// request for two different ones.
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
            return Err(input("the body must be a JSON object, and is empty"));
        }
        match serde_json::from_slice(body) {
            Ok(fields) => Ok(fields),
            Err(error) if error.is_data() => Err(input("the body must be a JSON object")),
            Err(error) => Err(InvalidRequest::Input(format!(
                "the body must be a JSON object; it stops being JSON at line {}, column {}",
                error.line(),
                error.column()
            ))),
        }
    }

    fn take(&mut self, name: &str) -> Result<Option<Value>, InvalidRequest> {
        if self.given_twice.contains(name) {
            return Err(InvalidRequest::Input(format!("{name} must be given once")));
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

    /// A whole number, however it is written: `30`, `30.0` and `3e1` are the same in JSON. One that is too big
    /// for its type stays too big.
    fn whole_number(&mut self, name: &str) -> Result<Option<i64>, InvalidRequest> {
        let Some(value) = self.take(name)? else {
            return Ok(None);
        };
        let whole = match (value.as_i64(), value.as_f64()) {
            (Some(whole), _) => Some(whole),
            // `as` saturates.
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
        seconds.map(Some).ok_or_else(|| input("wait_seconds must be 0 to 60"))
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
