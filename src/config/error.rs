//! Why settings aren't taken.

use thiserror::Error;

/// Why a node can't start as it was asked to: one line, for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{flag}: {problem}; {fix}")]
pub struct ConfigError {
    /// The flag, wherever the value came from: variable and key are named after it.
    pub flag: &'static str,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub fix: String,
}

impl ConfigError {
    pub(super) fn new(flag: &'static str, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        ConfigError { flag, problem: problem.into(), fix: fix.into() }
    }
}
