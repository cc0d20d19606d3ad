//! This node, as the cluster knows it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::ConsensusError;
use crate::peer::Sender;
use crate::raft_types::{Node, NodeId};
use crate::storage::Identity;

/// Who this node is, which cluster it belongs to, and when it last heard of a raft leader.
pub struct LocalNode {
    node_id: NodeId,
    node: Node,
    identity: Mutex<Identity>,
    raft_leader_heard_at: Mutex<Option<Instant>>,
}

impl LocalNode {
    /// A node with a stored identity.
    pub fn new(identity: Identity, node: Node) -> Self {
        Self {
            node_id: identity.node_id(),
            node,
            identity: Mutex::new(identity),
            raft_leader_heard_at: Mutex::new(None),
        }
    }

    /// Its id.
    pub fn node_id(&self) -> NodeId {
        self.node_id
    }

    /// Its label and addresses.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The cluster that it belongs to, once there is one.
    pub fn cluster_id(&self) -> Option<Uuid> {
        self.identity.lock().cluster_id()
    }

    /// On whose behalf it sends.
    pub fn sender(&self) -> Sender {
        Sender { node_id: self.node_id, cluster_id: self.cluster_id() }
    }

    /// Joins a cluster for good, unless this node belongs to one. It is on the disk before this returns.
    pub fn adopt_cluster(&self, cluster_id: Uuid) -> Result<(), ConsensusError> {
        let mut identity = self.identity.lock();
        if identity.cluster_id().is_none() {
            identity.set_cluster_id(cluster_id)?;
            tracing::info!(%cluster_id, node_id = self.node_id, "this node belongs to a cluster now");
        }
        Ok(())
    }

    /// Takes note of a message from a raft leader that this node follows.
    pub fn heard_of_raft_leader(&self) {
        *self.raft_leader_heard_at.lock() = Some(Instant::now());
    }

    /// Whether such a message came within the last `period`.
    pub fn has_heard_within(&self, period: Duration) -> bool {
        let heard_at = *self.raft_leader_heard_at.lock();
        heard_at.is_some_and(|at| at.elapsed() <= period)
    }
}
