//! The messages between nodes, except openraft's own.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::{Operation, Outcome};
use crate::raft_types::{NodeId, SnapshotMeta, Vote};

/// The version of all messages between nodes, openraft's included. A node rejects a peer of another version with a
/// clear reason, so that no message is misread.
pub const PROTOCOL: u32 = 2;

/// Paths on the peer listener.
pub mod path {
    /// Asks a node for its identity. Needs no cluster id, because nodes ask before they belong to a cluster.
    pub const IDENTITY: &str = "/peer/v1/identity";
    /// Raft's AppendEntries.
    pub const APPEND: &str = "/peer/v1/append";
    /// Raft's RequestVote.
    pub const VOTE: &str = "/peer/v1/vote";
    /// Raft's PreVote: asks for a vote without a new raft term.
    pub const PRE_VOTE: &str = "/peer/v1/pre-vote";
    /// Raft's InstallSnapshot.
    pub const SNAPSHOT: &str = "/peer/v1/snapshot";
    /// Asks a node to take over as raft leader.
    pub const TRANSFER: &str = "/peer/v1/transfer";
    /// Asks the raft leader to decide operations.
    pub const FORWARD: &str = "/peer/v1/forward";
}

/// Names of the headers of a request between nodes.
pub mod header {
    /// See [`super::PROTOCOL`].
    pub const PROTOCOL: &str = "x-quorate-protocol";
    /// The sender's cluster.
    pub const CLUSTER: &str = "x-quorate-cluster";
    /// The sender's node id.
    pub const FROM: &str = "x-quorate-from";
    /// The node id of the intended receiver.
    pub const TO: &str = "x-quorate-to";
}

/// A node's description of itself, for a node that knows the cluster secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerIdentity {
    /// Its label.
    pub name: String,
    /// Its id.
    pub node_id: NodeId,
    /// Its cluster, if it has one.
    pub cluster_id: Option<Uuid>,
    /// Whether its log is empty.
    pub is_empty: bool,
    /// The names of its `--peers`, sorted.
    pub expected_names: Vec<String>,
    /// URL of its client listener.
    pub client_url: String,
    /// Its version, for people.
    pub version: String,
}

/// A caller's operation on its way to the raft leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardedOperation {
    /// The operation.
    pub operation: Operation,
    /// Milliseconds until its caller stops waiting.
    pub remaining_ms: u64,
}

/// The outcome of an operation, or the reason why there is none.
pub type Decision = Result<Outcome, Undecided>;

/// Why an operation or a command has no outcome. The two cases are never mixed, all the way to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Undecided {
    /// The node is not raft leader, is not ready as one, or cannot reach its quorum. Nothing was changed, and nothing
    /// will be: nothing was proposed, or every node refuses the proposal.
    #[error("nothing was proposed: the node is not a ready raft leader")]
    NothingProposed,
    /// It was proposed. It may be committed already, may be committed later, or may never be.
    #[error("proposed, but the outcome is unknown")]
    OutcomeUnknown,
}

/// The message before the bytes of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotHead {
    /// The raft leader's vote.
    pub vote: Vote,
    /// The last entry and the members that the snapshot covers.
    pub meta: SnapshotMeta,
}
