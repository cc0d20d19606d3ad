//! Values that a person types after a flag.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::client::ClientBuilder;
use crate::domain::LeaseDuration;

/// Help for an argument that names one room.
pub const ROOM_HELP: &str = "Id of the room: 8 to 64 ASCII letters, digits, - or _";

/// Reads a URL for `--url`: plain HTTP. A slash at its end is dropped.
pub fn parse_url(text: &str) -> Result<String, String> {
    match reqwest::Url::parse(text) {
        Ok(url) if url.scheme() == "http" && url.has_host() => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err(format!("write a URL such as {}", ClientBuilder::DEFAULT_URL)),
    }
}

/// Reads a duration such as 500ms, 30s or 2m. A number without a unit is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().map(Duration::from_secs);
    seconds.or_else(|_| humantime::parse_duration(text)).map_err(|error| {
        format!("write a duration such as 500ms, 30s or 2m; a number without a unit is seconds ({error})")
    })
}

/// The value of `--ttl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl(LeaseDuration);

impl Ttl {
    /// The duration of the lease.
    pub fn as_duration(self) -> Duration {
        self.0.as_duration()
    }

    /// Help for `--ttl`.
    pub fn help() -> String {
        format!("How long the lease lasts if it is not renewed: {}", Self::rule())
    }

    fn rule() -> String {
        format!("whole seconds from {}s to {}s", LeaseDuration::SECONDS_MIN, LeaseDuration::SECONDS_MAX)
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Ttl(LeaseDuration::DEFAULT)
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.as_duration().as_secs())
    }
}

impl FromStr for Ttl {
    type Err = String;

    fn from_str(text: &str) -> Result<Ttl, String> {
        let duration = parse_duration(text)?;
        let whole_seconds = Some(duration.as_secs()).filter(|_| duration.subsec_nanos() == 0);
        let lease = whole_seconds.and_then(LeaseDuration::from_secs);
        lease.map(Ttl).ok_or_else(|| format!("write {}", Ttl::rule()))
    }
}

#[cfg(test)]
mod tests;
