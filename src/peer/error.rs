//! Failures of a request to a peer.

/// Why a peer gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// No connection. The request was certainly not delivered.
    #[error("peer {address} cannot be reached: {reason}")]
    Unreachable {
        /// The peer's address.
        address: String,
        /// The cause.
        reason: String,
    },
    /// The request was sent at least in part, and no whole answer came in time. The peer may have acted on it.
    #[error("peer {address} did not answer: {reason}")]
    NoAnswer {
        /// The peer's address.
        address: String,
        /// The cause.
        reason: String,
    },
    /// The peer turned the request down before it acted on it.
    #[error("peer {address} rejected the request with status {status}: {reason}")]
    Rejected {
        /// The peer's address.
        address: String,
        /// HTTP status.
        status: u16,
        /// The peer's explanation.
        reason: String,
    },
    /// The request was too large to encode, or the answer was too large or could not be decoded.
    #[error("peer {address}: {reason}")]
    Malformed {
        /// The peer's address.
        address: String,
        /// The cause.
        reason: String,
    },
}

impl PeerError {
    /// Whether the peer certainly did nothing.
    pub fn certainly_did_nothing(&self) -> bool {
        matches!(self, PeerError::Unreachable { .. } | PeerError::Rejected { .. })
    }
}
