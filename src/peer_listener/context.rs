//! What the handlers of the peer listener share.

use crate::consensus::Consensus;
use crate::peer::ClusterSecret;
use crate::service::Decider;

/// What all handlers share.
#[derive(Clone)]
pub struct PeerContext {
    /// Takes the raft messages.
    pub consensus: Consensus,
    /// Decides forwarded operations.
    pub decider: Decider,
    /// The secret that peers must prove. Without one, every caller is believed.
    pub secret: Option<ClusterSecret>,
    /// The names of the nodes that are to found the cluster, sorted.
    pub expected_names: Vec<String>,
}
