//! What the service is asked, and what it answers.

use std::time::Duration;

use super::{IdempotencyKey, LeaseSecret};
use crate::domain::{ContenderId, LeaseDuration, Metadata, RoomId, RoomView};

/// A request for a room, as a client made it.
#[derive(Debug, Clone)]
pub struct CampaignRequest {
    /// The room.
    pub room: RoomId,
    /// Who wants it.
    pub contender: ContenderId,
    /// What everybody shall see beside the name.
    pub metadata: Option<Metadata>,
    /// How long the lease shall last.
    pub lease_duration: LeaseDuration,
    /// How long to wait for a room that somebody holds.
    pub wait: Duration,
    /// What makes a repeated request the same one.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A holder's wish to keep its room.
#[derive(Debug, Clone)]
pub struct RenewRequest {
    /// The room.
    pub room: RoomId,
    /// The proof of being the holder.
    pub secret: LeaseSecret,
    /// A new duration, or the lease's own.
    pub lease_duration: Option<LeaseDuration>,
    /// New metadata, or the lease's own.
    pub metadata: Option<Metadata>,
}

/// A holder's wish to give its room up.
#[derive(Debug, Clone)]
pub struct ResignRequest {
    /// The room.
    pub room: RoomId,
    /// The proof of being the holder.
    pub secret: LeaseSecret,
}

/// How a campaign ended.
#[derive(Debug, Clone)]
pub enum CampaignAnswer {
    /// The caller holds the room.
    Won(Holding),
    /// Somebody else does, or the caller by an earlier request that it can't prove.
    Follower(RoomView),
}

/// What a holder is told.
#[derive(Debug, Clone)]
pub struct Holding {
    /// The room, with the caller's lease in it.
    pub view: RoomView,
    /// The proof for renewing and resigning.
    pub secret: LeaseSecret,
    /// How long the caller may act, counted from before it sent its request.
    pub valid_for: Duration,
}

/// An answer, and the node that decided it.
#[derive(Debug, Clone)]
pub struct Decided<T> {
    /// The answer.
    pub answer: T,
    /// The name of the node that decided: the raft leader, or this one for a local read.
    pub decided_by: String,
}

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// As of a moment after the question was asked.
    Linearizable,
    /// As this node knows it.
    Local,
}

/// How this node and its cluster stand.
#[derive(Debug, Clone)]
pub struct NodeStatus {
    /// This node's label.
    pub name: String,
    /// This node's id.
    pub node_id: u64,
    /// The cluster, once it is founded.
    pub cluster_id: Option<String>,
    /// `raft_leader`, `raft_follower`, `raft_candidate` or `raft_learner`.
    pub role: &'static str,
    /// Name of the node that this one believes is raft leader.
    pub raft_leader: Option<String>,
    /// This node's raft term.
    pub raft_term: u64,
    /// Index of the last entry in the log here.
    pub last_log_index: u64,
    /// Index of the last entry known to be committed.
    pub committed_index: u64,
    /// Index of the last entry applied here.
    pub applied_index: u64,
    /// Digest of the state as of `applied_index`.
    pub state_digest: String,
    /// Leases that live here as of `applied_index`.
    pub live_leases: u64,
    /// Entries written to the log here since the start.
    pub log_entries_written: u64,
    /// Flushes of the log to the disk since the start.
    pub log_flushes: u64,
    /// The members of the cluster.
    pub members: Vec<MemberStatus>,
    /// Whether this node can serve, or why not.
    pub readiness: Result<(), String>,
}

/// One member of the cluster.
#[derive(Debug, Clone)]
pub struct MemberStatus {
    /// Its label.
    pub name: String,
    /// Its id.
    pub node_id: u64,
    /// URL of its client listener.
    pub client_url: String,
    /// `host:port` of its peer listener.
    pub peer_address: String,
    /// Whether it votes.
    pub voter: bool,
}
