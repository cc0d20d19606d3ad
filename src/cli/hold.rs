//! `quorate hold`: lead for as long as possible, and report it to programs that read stdout or ask the sidecar.

mod args;
mod keep;
mod sidecar;

pub use args::HoldArgs;
pub use keep::run;
