//! Settings: what the operator typed ([`RawConfig`]) becomes valid settings ([`Config`]), or one line that says what to
//! type instead ([`ConfigError`]).
//!
//! A flag wins over its environment variable, a variable over the file, and the file over the default. The defaults are
//! safe for one person on one machine. A node never starts with a guess: if a value can't be understood, or if it would
//! open the cluster to the network, the node doesn't start.
//!
//! A default value is written once. The settings of another module have their defaults there.

mod checked;
mod error;
#[cfg(test)]
mod fuzz_tests;
mod log_format;
mod parse;
mod peers;
mod raw;
mod secret_file;
#[cfg(test)]
mod tests;

pub use checked::Config;
pub use error::ConfigError;
pub use log_format::LogFormat;
pub use peers::Peer;
pub use raw::{RawConfig, unknown_variables};
pub use secret_file::access_tokens;
