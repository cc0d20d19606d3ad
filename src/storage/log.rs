//! The raft log and the vote: [`store`] is what openraft sees, [`flush`] is the task that writes.

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
