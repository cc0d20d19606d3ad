//! Agreement on commands, and the state that follows from them.
//!
//! Only this module and `storage`'s raft log know openraft's interface.
//!
//! ```text
//! propose ─► stamp ─► raft log ─► majority ─► StateMachine::apply ─► Replica ─► outcome
//! judge   ─► read barrier ─► judge again                             (no log entry)
//! ```

mod error;
mod founding;
mod handle;
mod inbox;
mod last_heard;
mod local;
mod network;
mod read_barrier;
mod reign;
mod replica;
mod silence;
mod start;
mod state_machine;
mod status;

use std::time::Duration;

pub use error::ConsensusError;
pub use founding::Founding;
pub use handle::{Consensus, RaftLeader};
pub use inbox::{Inbox, RaftAnswer, Unanswered};
pub use local::LocalNode;
pub use replica::{Position, Replica};
pub use start::{Parts, start};
pub use state_machine::{RaftSnapshot, StateMachine};
pub use status::RaftStatus;

/// How fast the cluster notices a lost node, and how much log it keeps.
#[derive(Debug, Clone)]
pub struct ConsensusSettings {
    /// How often a raft leader is heard.
    pub heartbeat: Duration,
    /// How long a raft leader that has lost touch may be believed. A silence of 1.5 to 2 times this starts a raft
    /// election; chance decides in between, so that two nodes seldom stand at once.
    pub raft_election_timeout: Duration,
    /// After how many entries a snapshot is made.
    pub snapshot_every: u64,
    /// How many entries stay behind a snapshot, so that followers seldom need it whole.
    pub log_entries_kept: u64,
}
