//! Our choice of openraft types, so that nobody else writes its angle brackets.

mod runtime;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::domain::{Command, Outcome};

/// Drawn at random when a data directory is made; it dies with that directory.
pub type NodeId = u64;

/// How a node is reached. Addresses are names, looked up anew for each connection.
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
    /// The types that openraft works with here.
    pub TypeConfig:
        D = Command,
        R = Reply,
        NodeId = NodeId,
        Node = Node,
        LeaderId = openraft::impls::leader_id_std::LeaderId<u64, NodeId>,
        AsyncRuntime = runtime::Runtime,
);

/// What applying an entry answers. Entries of raft's own have nothing to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply(pub Option<Outcome>);

/// Position and raft term of an entry.
pub type LogId = openraft::type_config::alias::LogIdOf<TypeConfig>;
/// One entry of the raft log.
pub type Entry = openraft::type_config::alias::EntryOf<TypeConfig>;
/// What an entry carries.
pub type EntryPayload = openraft::EntryPayload<Command, NodeId, Node>;
/// Whom this node voted for, or follows.
pub type Vote = openraft::type_config::alias::VoteOf<TypeConfig>;
/// The members of the cluster, and the entry that made them so.
pub type StoredMembership = openraft::type_config::alias::StoredMembershipOf<TypeConfig>;
/// What a snapshot covers.
pub type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<TypeConfig>;

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, room) = match self {
            Command::Campaign { campaign, .. } => ("campaign", Some(&campaign.room)),
            Command::Renew { renew, .. } => ("renew", Some(&renew.room)),
            Command::Resign { resign, .. } => ("resign", Some(&resign.room)),
            Command::Tick { .. } => ("tick", None),
            Command::AnchorWallClock { .. } => ("anchor", None),
            Command::RaiseFencingFloor { .. } => ("floor", None),
        };
        match room {
            Some(room) => write!(f, "{kind} {room}"),
            None => f.write_str(kind),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            None => "nothing",
            Some(Outcome::Granted(_)) => "granted",
            Some(Outcome::Occupied(_)) => "occupied",
            Some(Outcome::Renewed(_)) => "renewed",
            Some(Outcome::Resigned(_)) => "resigned",
            Some(Outcome::Viewed(_)) => "viewed",
            Some(Outcome::Ticked { .. }) => "ticked",
            Some(Outcome::Noted) => "noted",
            Some(Outcome::Refused(_)) => "refused",
        };
        f.write_str(kind)
    }
}
