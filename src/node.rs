//! One node: puts the parts together, runs them, and stops them in order.

mod assemble;
mod error;
mod open_files;
mod outside;
mod run;

pub use assemble::Node;
pub use error::NodeError;
pub use outside::Outside;
pub use run::run;
