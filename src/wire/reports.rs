//! Errors and the state of a node, as JSON.

use serde::{Deserialize, Serialize};
#[cfg(feature = "server")]
use utoipa::ToSchema;

/// The body of every error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct ErrorBody {
    /// The failure, as a short text.
    pub error: String,
    /// The kind of failure, for programs. A later version may send a code that is not listed here.
    #[cfg_attr(feature = "server", schema(value_type = ErrorCode))]
    pub code: String,
    /// The cause, and what to do about it, as a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false))]
    pub details: Option<String>,
    /// Retry after this many milliseconds. The header `Retry-After` says the same in whole seconds, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false))]
    pub retry_after_ms: Option<u64>,
    /// The same as the `X-Request-Id` header. The server's trace contains it.
    pub request_id: String,
}

/// The error codes. Each has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 400: the request is malformed; `details` names the field and its rule.
    InvalidInput,
    /// 400: the TTL is out of range.
    InvalidTtl,
    /// 401: this node requires an access token, and the request has none.
    AuthenticationRequired,
    /// 401: this node does not accept the request's access token.
    AuthenticationFailed,
    /// 403: elections are switched off at this node.
    Forbidden,
    /// 404: the leader token does not belong to the current lease. The caller no longer leads.
    LeaseNotCurrent,
    /// 404: there is no such route.
    NotFound,
    /// 405: the header `Allow` lists the methods of the route.
    MethodNotAllowed,
    /// 409: the cluster has as many live leases as its operator allows.
    CapacityExceeded,
    /// 413: the body is larger than this node accepts.
    PayloadTooLarge,
    /// 415: the `Content-Type` is not JSON.
    UnsupportedMediaType,
    /// 429: the client has used up a limit; `Retry-After` says when to retry.
    RateLimited,
    /// 500: a bug. The cause is in the server's trace, with the request id.
    InternalError,
    /// 503: this node cannot decide the request now. Nothing was changed, and nothing will be.
    Unavailable,
    /// 503: the change may or may not have been made.
    OutcomeUnknown,
}

impl ErrorCode {
    /// The code as the JSON has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid_input",
            Self::InvalidTtl => "invalid_ttl",
            Self::AuthenticationRequired => "authentication_required",
            Self::AuthenticationFailed => "authentication_failed",
            Self::Forbidden => "forbidden",
            Self::LeaseNotCurrent => "lease_not_current",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::CapacityExceeded => "capacity_exceeded",
            Self::PayloadTooLarge => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::RateLimited => "rate_limited",
            Self::InternalError => "internal_error",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }

    /// The HTTP status of this code.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidInput | Self::InvalidTtl => 400,
            Self::AuthenticationRequired | Self::AuthenticationFailed => 401,
            Self::Forbidden => 403,
            Self::LeaseNotCurrent | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::CapacityExceeded => 409,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RateLimited => 429,
            Self::InternalError => 500,
            Self::Unavailable | Self::OutcomeUnknown => 503,
        }
    }
}

/// The `status` of `Health`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// The node is healthy.
    Ok,
}

/// The node is healthy. Otherwise it answers 503 with an `ErrorBody`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Health {
    /// Always `ok`.
    pub status: HealthStatus,
}

/// The part of a node in its Raft cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RaftRole {
    /// It decides the order of all changes.
    RaftLeader,
    /// It stores what the raft leader sends, and votes.
    RaftFollower,
    /// It tries to become raft leader.
    RaftCandidate,
    /// It stores what the raft leader sends, without a vote.
    RaftLearner,
}

/// The state of a node and of its cluster, as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct NodeReport {
    /// The version of the program.
    pub version: String,
    /// The node's name, from its settings.
    pub name: String,
    /// The node's id, drawn at random when its data directory was created.
    pub node_id: u64,
    /// The cluster's id. Null until the cluster is founded.
    #[cfg_attr(feature = "server", schema(required = true))]
    pub cluster_id: Option<String>,
    /// The node's part in the Raft cluster.
    #[cfg_attr(feature = "server", schema(value_type = RaftRole))]
    pub role: String,
    /// The name of the node that this node believes to be raft leader. Null if it knows none.
    #[cfg_attr(feature = "server", schema(required = true))]
    pub raft_leader: Option<String>,
    /// The raft term that the node is in.
    pub raft_term: u64,
    /// The index of the last entry in this node's raft log.
    pub last_log_index: u64,
    /// The index of the last entry that this node knows to be committed.
    pub committed_index: u64,
    /// The index of the last entry that this node has applied.
    pub applied_index: u64,
    /// A checksum of the rooms at `applied_index`. Nodes with an equal index have equal digests.
    pub state_digest: String,
    /// The number of live leases at `applied_index`.
    pub live_leases: u64,
    /// The number of entries that this node has written to its raft log since it started.
    pub log_entries_written: u64,
    /// The number of flushes of the raft log since the node started. Under load, many entries share one flush.
    pub log_flushes: u64,
    /// The members of the cluster.
    pub members: Vec<Member>,
    /// Whether this node can serve a linearizable request now.
    pub ready: bool,
    /// Why the node is not ready. Left out if it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false))]
    pub reason: Option<String>,
}

/// One member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its id.
    pub node_id: u64,
    /// The URL of its client listener.
    pub url: String,
    /// The `host:port` of its peer listener.
    pub peer: String,
    /// Whether it has a vote in Raft.
    pub voter: bool,
}

#[cfg(test)]
mod tests;
