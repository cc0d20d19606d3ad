//! How the nodes of a cluster agree, as far as an operator may choose.

use std::time::Duration;

/// How fast the cluster notices a lost node, and how much of the raft log a node keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsensusSettings {
    /// The raft leader sends a heartbeat this often.
    pub heartbeat: Duration,
    /// A raft follower that hears nothing for 1.5 to 2 times this starts a raft election. The factor is random, so that
    /// two nodes rarely start one at the same moment. A raft leader that hears no quorum for this long falls silent.
    pub raft_election_timeout: Duration,
    /// A snapshot is made after this many raft log entries.
    pub snapshot_every: u64,
    /// This many raft log entries stay behind a snapshot. A raft follower that missed no more than these needs no
    /// snapshot.
    pub log_entries_kept: u64,
}

impl Default for ConsensusSettings {
    fn default() -> Self {
        Self {
            // Seven heartbeats in a row must be missing before a raft election starts.
            heartbeat: Duration::from_millis(100),
            // A lost raft leader is replaced after about one second.
            raft_election_timeout: Duration::from_millis(500),
            snapshot_every: 10_000,
            // Two snapshots' worth.
            log_entries_kept: 20_000,
        }
    }
}
