//! Times as people read them.

use crate::domain::WallTime;

/// RFC 3339 with milliseconds. A time after the last moment that the calendar can show becomes that moment.
pub fn rfc_3339(time: WallTime) -> String {
    let millis = i64::try_from(time.0).unwrap_or(i64::MAX);
    let timestamp = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{timestamp:.3}")
}

#[cfg(test)]
mod tests;
