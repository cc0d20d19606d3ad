//! `quorate run`: run a command for as long as this process leads, and not a moment longer.
//!
//! The command's whole process group is gone before authority ends, and only then is the room given up: a
//! [`guardian`] in between sees to the first even if this process can't. Authority ends at 80 % of the lease.

mod args;
pub mod guardian;
mod protocol;
mod state_file;
mod supervisor;
mod while_leading;

pub use args::RunArgs;
pub use supervisor::VARIABLES;
pub use while_leading::run;
