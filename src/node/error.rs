//! Why a node can't start, or has to end.

use std::net::SocketAddr;

use crate::consensus::ConsensusError;
use crate::peer::PeerError;
use crate::storage::StorageError;

/// Why a node can't run, or can't any longer.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Another process, or another node, listens there.
    #[error("{flag} {address}: {source}; is another node running? choose another address with {flag}")]
    Listen {
        /// The flag to change.
        flag: &'static str,
        /// What was to be bound.
        address: SocketAddr,
        /// Why it can't.
        source: std::io::Error,
    },
    /// The data directory can't be used.
    #[error("--data-dir: {0}")]
    Storage(#[from] StorageError),
    /// The peers are set up in a way that can't be right.
    #[error("{0}")]
    Setup(String),
    /// Something broke that a restart may mend.
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
