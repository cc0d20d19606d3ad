//! The faults that a run injects. A seed draws which ones, and for how long.

mod cables;
mod clocks;
mod disks;
mod next;
mod processes;
mod scenario;
mod strike;

pub use next::strike;
pub use scenario::Scenario;
pub use strike::Strike;
