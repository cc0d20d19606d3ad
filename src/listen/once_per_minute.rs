//! A limit for trace events that callers can cause.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Lets a trace event through once a minute. Otherwise a caller could fill the disk with it.
#[derive(Default)]
pub struct OncePerMinute {
    last: Mutex<Option<Instant>>,
}

impl OncePerMinute {
    const EVERY: Duration = Duration::from_secs(60);

    /// Whether an event may go through now. If it may, the next one may go through a minute later.
    pub fn is_due(&self) -> bool {
        let mut last = self.last.lock();
        let is_due = last.is_none_or(|last| last.elapsed() >= Self::EVERY);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
