//! What a node says about failures and about itself.

use serde::{Deserialize, Serialize};
#[cfg(feature = "server")]
use utoipa::ToSchema;

/// What every failed request is answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct ErrorBody {
    /// What happened, for people.
    #[cfg_attr(feature = "server", schema(example = "Rate limit exceeded"))]
    pub error: String,
    /// What happened, for programs. A text, so that a client can read an answer with a code newer than itself.
    #[cfg_attr(feature = "server", schema(value_type = ErrorCode))]
    pub code: String,
    /// More about it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false, example = "600 campaigns a minute per node"))]
    pub details: Option<String>,
    /// When it may be worth asking again; `Retry-After` is the same in whole seconds, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false, example = 12000))]
    pub retry_after_ms: Option<u64>,
    /// The same as the `X-Request-Id` header. The server's trace events carry it.
    #[cfg_attr(feature = "server", schema(example = "req_5fZ0pS3bQmGdV8cN1xkT2w"))]
    pub request_id: String,
}

/// The codes of the contract. Each has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 400: bad JSON, bad id, wrong type, too long, malformed token.
    InvalidInput,
    /// 400: the TTL is outside 5 to 300.
    InvalidTtl,
    /// 401: access tokens are configured, and none came.
    AuthenticationRequired,
    /// 401: access tokens are configured, and a wrong one came.
    AuthenticationFailed,
    /// 403: elections are switched off here.
    Forbidden,
    /// 404: the token isn't the current lease's: expired, resigned, superseded or never issued.
    LeaseNotCurrent,
    /// 404: no such route.
    NotFound,
    /// 405: `Allow` says what the route does allow.
    MethodNotAllowed,
    /// 409: live leases are at the configured maximum.
    CapacityExceeded,
    /// 413: the body is over the limit.
    PayloadTooLarge,
    /// 415: the body is not JSON.
    UnsupportedMediaType,
    /// 429: `Retry-After` says when to come back.
    RateLimited,
    /// 500: a bug; the cause is in the server's trace under the request id.
    InternalError,
    /// 503: nothing was changed, and nothing will be.
    Unavailable,
    /// 503: the command may or may not have been committed.
    OutcomeUnknown,
}

impl ErrorCode {
    /// The text of the contract.
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

    /// The HTTP status that goes with it.
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

/// The `status` of [`Health`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// All is well.
    Ok,
}

/// All is well. A node for which it isn't answers 503 with an [`ErrorBody`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Health {
    /// Always `ok`.
    pub status: HealthStatus,
}

/// What a node is among the members of its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RaftRole {
    /// It orders the commands.
    RaftLeader,
    /// It follows.
    RaftFollower,
    /// It tries to become raft leader.
    RaftCandidate,
    /// It follows, and has no vote.
    RaftLearner,
}

/// How a node and its cluster stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct NodeReport {
    /// Version of the program.
    #[cfg_attr(feature = "server", schema(example = "0.1.0"))]
    pub version: String,
    /// The node's label.
    #[cfg_attr(feature = "server", schema(example = "node-1"))]
    pub name: String,
    /// The node's id.
    #[cfg_attr(feature = "server", schema(example = 1))]
    pub node_id: u64,
    /// The cluster, once it is founded.
    #[cfg_attr(feature = "server", schema(required = true))]
    pub cluster_id: Option<String>,
    /// What the node is.
    #[cfg_attr(feature = "server", schema(value_type = RaftRole))]
    pub role: String,
    /// The name of the node that this one believes is raft leader.
    #[cfg_attr(feature = "server", schema(required = true, example = "node-1"))]
    pub raft_leader: Option<String>,
    /// The node's raft term.
    #[cfg_attr(feature = "server", schema(example = 3))]
    pub raft_term: u64,
    /// Index of the last entry in the log here.
    #[cfg_attr(feature = "server", schema(example = 4711))]
    pub last_log_index: u64,
    /// Index of the last entry known to be committed.
    #[cfg_attr(feature = "server", schema(example = 4711))]
    pub committed_index: u64,
    /// Index of the last entry applied here.
    #[cfg_attr(feature = "server", schema(example = 4711))]
    pub applied_index: u64,
    /// Digest of the replicated state as of `applied_index`: equal on all nodes at equal index.
    #[cfg_attr(feature = "server", schema(example = "6f1ed002ab5595859014ebf0951522d9"))]
    pub state_digest: String,
    /// Leases that live here as of `applied_index`.
    #[cfg_attr(feature = "server", schema(example = 12))]
    pub live_leases: u64,
    /// Entries written to the log here since the start.
    #[cfg_attr(feature = "server", schema(example = 4711))]
    pub log_entries_written: u64,
    /// Flushes of the log to the disk since the start; many entries share one under load.
    #[cfg_attr(feature = "server", schema(example = 512))]
    pub log_flushes: u64,
    /// The members of the cluster.
    pub members: Vec<Member>,
    /// Whether this node can serve a linearizable request now.
    pub ready: bool,
    /// Why it can't; left out if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schema(nullable = false))]
    pub reason: Option<String>,
}

/// One member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(ToSchema))]
pub struct Member {
    /// Its label.
    #[cfg_attr(feature = "server", schema(example = "node-1"))]
    pub name: String,
    /// Its id.
    #[cfg_attr(feature = "server", schema(example = 1))]
    pub node_id: u64,
    /// URL of its client listener.
    #[cfg_attr(feature = "server", schema(example = "http://10.0.0.1:7400"))]
    pub url: String,
    /// `host:port` of its peer listener.
    #[cfg_attr(feature = "server", schema(example = "10.0.0.1:7401"))]
    pub peer: String,
    /// Whether it votes.
    pub voter: bool,
}
