//! Values that a person types after a flag.

use std::time::Duration;

/// Reads a URL for `--url`: plain HTTP, without a slash at its end.
pub fn parse_url(text: &str) -> Result<String, String> {
    match reqwest::Url::parse(text) {
        Ok(url) if url.scheme() == "http" && url.has_host() => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err("write a URL as http://127.0.0.1:7400".to_owned()),
    }
}

/// A duration as 500ms, 30s or 2m; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().map(Duration::from_secs);
    seconds.or_else(|_| humantime::parse_duration(text)).map_err(|error| error.to_string())
}

/// A duration for a lease: whole seconds within the limits.
pub fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = parse_duration(text)?;
    let fits = (Duration::from_secs(5)..=Duration::from_secs(300)).contains(&ttl) && ttl.subsec_nanos() == 0;
    if fits { Ok(ttl) } else { Err("write whole seconds from 5s to 300s".to_owned()) }
}

#[cfg(test)]
mod tests;
