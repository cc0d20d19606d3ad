//! The state that the handlers of the peer listener share.

use crate::consensus::Consensus;
use crate::peer::ClusterSecret;
use crate::service::Decider;

/// Consensus and service, and what the checks of a request need.
#[derive(Clone)]
pub struct PeerContext {
    /// Takes the raft messages.
    pub consensus: Consensus,
    /// Decides forwarded operations.
    pub decider: Decider,
    /// The secret that peers must prove. Without a secret, every caller is trusted.
    pub secret: Option<ClusterSecret>,
    /// The names of the nodes that are to found the cluster, sorted.
    pub expected_names: Vec<String>,
}
