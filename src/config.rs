//! Settings: what was typed ([`RawConfig`]) becomes what is valid ([`Config`]), or one line that says what to
//! type instead.
//!
//! Flags win over environment variables, those over the file, and that over the defaults, which are safe for
//! one person on one machine. A node never starts on a guess: what can't be understood, or would leave the
//! cluster open to the network, ends here.

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

pub use checked::{Config, RaftTuning};
pub use error::ConfigError;
pub use log_format::LogFormat;
pub use peers::Peer;
pub use raw::{RawConfig, unknown_variables};
pub use secret_file::access_tokens;
