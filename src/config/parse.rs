//! Parsers for the text of one setting. Each error names the flag and the fix.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use ipnet::IpNet;
use reqwest::Url;

use super::error::ConfigError;

/// A node's name. It is short and needs no quotes, because it appears in URLs, lists and trace events.
pub fn name(flag: &'static str, text: &str) -> Result<String, ConfigError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
        return Ok(text.to_owned());
    }
    let fix = "write 1 to 64 characters from A-Z a-z 0-9 . _ -";
    Err(ConfigError::new(flag, format!("{text:?} is not a valid node name"), fix))
}

/// An address to listen on. A DNS name is not accepted, because it could stand for several addresses.
pub fn listen(flag: &'static str, text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| {
        let fix = "write an IP address and a port, such as 127.0.0.1:7400 or [::1]:7400";
        ConfigError::new(flag, format!("{text:?} is not an address to listen on"), fix)
    })
}

/// A base URL, without a slash at its end.
pub fn url(flag: &'static str, text: &str) -> Result<String, ConfigError> {
    let valid = Url::parse(text).is_ok_and(|url| {
        let bare = url.query().is_none() && url.fragment().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty() && bare
    });
    if !valid {
        let fix = "write a URL such as http://node-1.example:7400, without a user name or a query";
        return Err(ConfigError::new(flag, format!("{text:?} is not a URL that clients could use"), fix));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Networks, or single addresses.
pub fn networks(flag: &'static str, entries: &[String]) -> Result<Vec<IpNet>, ConfigError> {
    let parse = |entry: &String| {
        let text = entry.trim();
        text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| {
            let fix = "write networks such as 10.0.0.0/8 or fd00::/8, separated by commas";
            ConfigError::new(flag, format!("{entry:?} is not a network"), fix)
        })
    };
    entries.iter().map(parse).collect()
}

/// A duration with its unit.
pub fn duration(flag: &'static str, text: &str, allowed: RangeInclusive<Duration>) -> Result<Duration, ConfigError> {
    let (least, most) = (humantime::format_duration(*allowed.start()), humantime::format_duration(*allowed.end()));
    let fix = format!("write a duration from {least} to {most}, such as 500ms or 30s");
    match humantime::parse_duration(text.trim()) {
        Ok(duration) if allowed.contains(&duration) => Ok(duration),
        Ok(_) => Err(ConfigError::new(flag, format!("{text:?} is out of range"), fix)),
        Err(_) => Err(ConfigError::new(flag, format!("{text:?} is not a duration"), fix)),
    }
}

/// A number with a lower limit.
pub fn at_least<N: PartialOrd + std::fmt::Display>(flag: &'static str, value: N, least: N) -> Result<N, ConfigError> {
    if value >= least {
        return Ok(value);
    }
    Err(ConfigError::new(flag, format!("{value} is too small"), format!("write {least} or more")))
}
