//! Why a node can't start with the given settings.

use thiserror::Error;

/// A setting that can't be used: one line for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{flag}: {problem}; {fix}")]
pub struct ConfigError {
    /// The flag of the setting, even if the value came from a variable or the file. Both are named after the flag.
    pub flag: &'static str,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub fix: String,
}

impl ConfigError {
    pub(super) fn new(flag: &'static str, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        ConfigError { flag, problem: problem.into(), fix: fix.into() }
    }
}
