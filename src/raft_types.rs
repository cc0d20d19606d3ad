//! Our choice of openraft's type parameters, and short names for the types that follow from it.

pub mod numbers;
mod runtime;

use serde::{Deserialize, Serialize};

use crate::domain::{Command, Outcome};

/// A node's id. It is drawn at random when a data directory is made, and is lost with that directory.
pub type NodeId = u64;

/// A node's label and addresses. A host name is looked up anew for each connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Node {
    /// A label for people, unique in the cluster.
    pub name: String,
    /// `host:port` of its peer listener.
    pub peer_address: String,
    /// URL of its client listener, as clients can reach it.
    pub client_url: String,
}

openraft::declare_raft_types!(
    /// The type parameters of openraft in this program.
    pub TypeConfig:
        D = Command,
        R = Outcome,
        NodeId = NodeId,
        Node = Node,
        LeaderId = openraft::impls::leader_id_std::LeaderId<u64, NodeId>,
        AsyncRuntime = runtime::Runtime,
);

/// Index and raft term of an entry.
pub type LogId = openraft::type_config::alias::LogIdOf<TypeConfig>;
/// One entry of the raft log.
pub type Entry = openraft::type_config::alias::EntryOf<TypeConfig>;
/// The content of an entry.
pub type EntryPayload = openraft::EntryPayload<Command, NodeId, Node>;
/// A node's vote: the candidate that it voted for, or the raft leader that it follows.
pub type Vote = openraft::type_config::alias::VoteOf<TypeConfig>;
/// The members of the cluster, and the log entry that made them members.
pub type StoredMembership = openraft::type_config::alias::StoredMembershipOf<TypeConfig>;
/// The last entry and the members that a snapshot covers.
pub type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<TypeConfig>;
