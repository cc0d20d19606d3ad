//! The raft log and the vote, stored by the crate raft-log.
//!
//! An append goes from [`store`], which openraft calls, through [`flush_queue`] to the task in [`flush`], which writes
//! to the disk. The [`watermark`] shows at the next start whether the log has lost something.

mod flush;
mod flush_queue;
mod open;
mod pending;
mod shared;
mod store;
mod types;
mod watermark;

pub use shared::LogStats;
pub use store::LogStore;
