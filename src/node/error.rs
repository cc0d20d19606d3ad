//! Why a node can't start, or has to stop.

use std::net::SocketAddr;

use crate::consensus::ConsensusError;
use crate::peer::PeerError;
use crate::storage::StorageError;

/// Why a node can't start, or has to stop.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The address can't be bound. Most often another process listens there.
    #[error("{flag} {address}: {source}; is another node running? choose another address with {flag}")]
    Listen {
        /// The flag to change.
        flag: &'static str,
        /// The address that this node was to listen on.
        address: SocketAddr,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The data directory can't be used.
    #[error("--data-dir: {0}")]
    Storage(#[from] StorageError),
    /// The settings can't work on this machine or in this cluster.
    #[error("{0}")]
    Setup(String),
    /// A failure that a restart may repair.
    #[error("{0}")]
    Stopped(String),
}

impl NodeError {
    /// Whether a restart with the same settings and data would fail again.
    pub fn needs_an_operator(&self) -> bool {
        !matches!(self, NodeError::Stopped(_))
    }
}

impl From<ConsensusError> for NodeError {
    fn from(error: ConsensusError) -> Self {
        match error {
            ConsensusError::Setup(reason) => NodeError::Setup(reason),
            ConsensusError::Storage(error) => NodeError::Storage(error),
            ConsensusError::Stopped(_) => NodeError::Stopped(error.to_string()),
        }
    }
}

impl From<PeerError> for NodeError {
    fn from(error: PeerError) -> Self {
        NodeError::Stopped(error.to_string())
    }
}

impl From<std::io::Error> for NodeError {
    fn from(error: std::io::Error) -> Self {
        NodeError::Stopped(error.to_string())
    }
}
