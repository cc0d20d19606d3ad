//! This node's identity and addresses.

use parking_lot::Mutex;
use uuid::Uuid;

use super::error::ConsensusError;
use crate::peer::Sender;
use crate::raft_types::{Node, NodeId};
use crate::storage::Identity;

/// This node: its id, its addresses and its cluster.
pub struct LocalNode {
    node_id: NodeId,
    node: Node,
    identity: Mutex<Identity>,
}

impl LocalNode {
    /// A node with its stored identity.
    pub fn new(identity: Identity, node: Node) -> Self {
        Self { node_id: identity.node_id(), node, identity: Mutex::new(identity) }
    }

    /// Its id.
    pub fn node_id(&self) -> NodeId {
        self.node_id
    }

    /// Its label and addresses.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Its cluster. `None` until it belongs to one.
    pub fn cluster_id(&self) -> Option<Uuid> {
        self.identity.lock().cluster_id()
    }

    /// The sender to name in requests to peers.
    pub fn sender(&self) -> Sender {
        Sender { node_id: self.node_id, cluster_id: self.cluster_id() }
    }

    /// Joins a cluster for good, unless this node belongs to one already. The cluster id is on the disk before this
    /// returns.
    ///
    /// # Errors
    /// `Storage` if the id could not be written.
    pub fn adopt_cluster(&self, cluster_id: Uuid) -> Result<(), ConsensusError> {
        let mut identity = self.identity.lock();
        if identity.cluster_id().is_none() {
            identity.set_cluster_id(cluster_id)?;
            tracing::info!(%cluster_id, node_id = self.node_id, "this node belongs to a cluster now");
        }
        Ok(())
    }
}
