//! Agreement on commands, and the state that follows from them.
//!
//! Only this module, `raft_types` and `storage`'s raft log know openraft's interface.
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
mod plausible;
mod read_barrier;
mod reign;
mod replica;
mod settings;
mod silence;
mod start;
mod state_machine;
mod status;

pub use error::ConsensusError;
pub use founding::Founding;
pub use handle::{Consensus, RaftLeader};
pub use inbox::{Inbox, RaftAnswer, Unanswered};
pub use local::LocalNode;
pub use replica::{Position, Replica};
pub use settings::ConsensusSettings;
pub use start::{Parts, start};
pub use state_machine::{RaftSnapshot, StateMachine};
pub use status::RaftStatus;
