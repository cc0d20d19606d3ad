//! Why a command has no outcome.

/// What became of a proposal that gave no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// This node may not propose now: it isn't raft leader, or has not applied an entry of its own reign, or
    /// has lost touch with its quorum. Nothing was proposed.
    #[error("nothing was proposed: this node is not a ready raft leader")]
    NotProposed,
    /// It was proposed, and may be committed or not.
    #[error("proposed, but the outcome is unknown")]
    OutcomeUnknown,
}

/// The read barrier could not be passed: this node may not be raft leader any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this node could not confirm that it is raft leader")]
pub struct BarrierFailed;

/// A failure that ends this node's part in the cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConsensusError {
    /// The raft core stopped, for instance since a write to the disk failed.
    #[error("raft has stopped: {0}")]
    Stopped(String),
    /// The cluster id could not be stored.
    #[error(transparent)]
    Storage(#[from] crate::storage::StorageError),
    /// The peers are set up in a way that can't be right.
    #[error("{0}")]
    Setup(String),
}
