//! A thread for work that blocks.

use std::io;

/// Where work that blocks is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// On threads of its own, so that it holds nothing up.
    OnThreads,
    /// At once, by the caller. In a simulation time stands still meanwhile, and no thread changes the order of things.
    AtOnce,
}

impl Blocking {
    /// Does the work.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
        match self {
            Blocking::OnThreads => tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?,
            Blocking::AtOnce => work(),
        }
    }
}
