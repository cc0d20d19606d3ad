//! What is done to the nodes, by a schedule that a seed draws.

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
