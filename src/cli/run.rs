//! `quorate run`: run a command while this process leads a room.
//!
//! The authority to act ends at 80 % of the lease. The command's whole process group is ended before that, and the room
//! is given up only when the group is gone. A [`guardian`] process ends the group even if this process can't.

mod args;
pub mod exec;
mod group;
pub mod guardian;
mod launch;
mod protocol;
mod state_file;
mod supervisor;
mod while_leading;

pub use args::RunArgs;
pub use launch::VARIABLES;
pub use while_leading::run;
