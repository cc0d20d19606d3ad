//! What nodes say to each other, beside openraft's own messages.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::{Ask, Outcome};
use crate::raft_types::{NodeId, SnapshotMeta, Vote};

/// The version of everything in this module and of openraft's messages. Nodes of different versions refuse
/// each other with a clear reason rather than misread each other.
pub const PROTOCOL: u32 = 1;

/// Paths on the peer listener.
pub mod path {
    /// Who are you? Answered without a cluster id, since it is how nodes find each other.
    pub const IDENTITY: &str = "/peer/v1/identity";
    /// Raft's AppendEntries.
    pub const APPEND: &str = "/peer/v1/append";
    /// Raft's RequestVote.
    pub const VOTE: &str = "/peer/v1/vote";
    /// Would you vote for me?
    pub const PRE_VOTE: &str = "/peer/v1/pre-vote";
    /// Raft's InstallSnapshot.
    pub const SNAPSHOT: &str = "/peer/v1/snapshot";
    /// Take over as raft leader.
    pub const TRANSFER: &str = "/peer/v1/transfer";
    /// Decide these for me.
    pub const FORWARD: &str = "/peer/v1/forward";
}

/// Names of the headers of a peer request.
pub mod header {
    /// See [`super::PROTOCOL`].
    pub const PROTOCOL: &str = "x-quorate-protocol";
    /// The cluster that the sender belongs to.
    pub const CLUSTER: &str = "x-quorate-cluster";
    /// The sender's node id.
    pub const FROM: &str = "x-quorate-from";
    /// The node id that is meant to get it.
    pub const TO: &str = "x-quorate-to";
}

/// Those headers, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// The cluster that the sender belongs to.
    pub cluster_id: Uuid,
    /// The sender.
    pub from: NodeId,
    /// Who is meant.
    pub to: NodeId,
}

/// What a node says about itself to one that knows the cluster secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerIdentity {
    /// Its label.
    pub name: String,
    /// Its id.
    pub node_id: NodeId,
    /// Its cluster, if it belongs to one.
    pub cluster_id: Option<Uuid>,
    /// Whether its log is empty.
    pub is_empty: bool,
    /// The names that it was told to expect, sorted.
    pub expected_names: Vec<String>,
    /// URL of its client listener.
    pub client_url: String,
    /// Its version, for people.
    pub version: String,
}

/// A caller's question on its way to the raft leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardedAsk {
    /// The question.
    pub ask: Ask,
    /// How long its caller will still be there.
    pub remaining_ms: u64,
}

/// The raft leader's answer, or why there is none.
pub type Decision = Result<Outcome, AskFailure>;

/// Why the node that was asked decided nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum AskFailure {
    /// It isn't raft leader, or not yet ready as such. Nothing was proposed.
    #[error("not decided: this node is not a ready raft leader")]
    NotDecided,
    /// It proposed, and doesn't know what came of it.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
}

/// What precedes the bytes of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotHead {
    /// The raft leader's vote.
    pub vote: Vote,
    /// What the snapshot covers.
    pub meta: SnapshotMeta,
}
