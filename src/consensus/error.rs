//! Failures that end this node's part in the cluster.

use std::fmt;

/// A failure that ends this node's part in the cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConsensusError {
    /// The raft core has stopped, for example because a write to the disk failed.
    #[error("raft has stopped: {0}")]
    Stopped(String),
    /// The cluster id could not be stored.
    #[error(transparent)]
    Storage(#[from] crate::storage::StorageError),
    /// The settings of the peers contradict each other.
    #[error("{0}")]
    Setup(String),
}

impl ConsensusError {
    /// The raft core has stopped for this reason.
    pub(super) fn stopped(reason: impl fmt::Display) -> Self {
        Self::Stopped(reason.to_string())
    }
}
