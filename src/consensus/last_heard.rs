//! When this node last heard of a raft leader.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The moment of the last message from a raft leader that this node follows.
#[derive(Default)]
pub struct LastHeard(Mutex<Option<Instant>>);

impl LastHeard {
    /// Notes that such a message has just arrived.
    pub fn note(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    /// Whether the last one came within `period` of now.
    pub fn is_within(&self, period: Duration) -> bool {
        self.0.lock().is_some_and(|at| at.elapsed() <= period)
    }
}
