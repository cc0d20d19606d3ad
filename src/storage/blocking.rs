//! Where blocking work runs: on a thread for such work, or at once.

use std::io;

/// Where blocking work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// On tokio's threads for blocking work, so that it delays no other task.
    OnThreads,
    /// At once, in the caller's task. A simulation needs this: its time stands still during the work, and no other
    /// thread changes the order of events.
    AtOnce,
}

impl Blocking {
    /// Runs the work and returns its result.
    #[expect(clippy::disallowed_methods, reason = "a simulation does the work at once")]
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
        match self {
            Blocking::OnThreads => tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?,
            Blocking::AtOnce => work(),
        }
    }
}
