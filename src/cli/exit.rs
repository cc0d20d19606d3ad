//! How a command ends: the exit code for scripts, and the error message for people.

use std::process::ExitCode;

use crate::client::ClientError;
use crate::config::ConfigError;
use crate::wire::ErrorCode;

/// The meaning of each exit code, for the help.
pub const CODES: &str = "\
Exit codes:
  0   success
  10  somebody else leads the room, and the command was not asked to wait
  11  the room was not won within --wait
  20  the leadership is lost, or may be lost
  64  wrong command line
  69  no node was reached, or none can decide now: try again later
  70  internal error: a bug, or this machine fails
  77  not allowed: the cluster asks for an access token, or its elections are switched off
  78  wrong configuration or unusable data directory: a restart does not help";

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0.
    Success,
    /// 10: somebody else leads, and the command was not asked to wait.
    OtherLeads,
    /// 11: somebody else led for the whole time of `--wait`, or no node could decide.
    NotWonInTime,
    /// 20: the leadership is lost, or may be lost.
    Lost,
    /// 64: wrong command line.
    Usage,
    /// 69: no node was reached, or none can decide now.
    Unreachable,
    /// 70: a bug, or a failing machine.
    Internal,
    /// 77: the cluster doesn't allow the request.
    NotAllowed,
    /// 78: the configuration or the data directory can't be used. A restart won't help.
    Configuration,
    /// The exit code of the command of `quorate run`.
    Child(u8),
    /// 128 and the number of the signal that ended this process.
    Signal(u8),
}

impl Exit {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::OtherLeads => 10,
            Exit::NotWonInTime => 11,
            Exit::Lost => 20,
            Exit::Usage => 64,
            Exit::Unreachable => 69,
            Exit::Internal => 70,
            Exit::NotAllowed => 77,
            Exit::Configuration => 78,
            Exit::Child(code) => code,
            Exit::Signal(number) => number.saturating_add(128),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

impl From<&ClientError> for Exit {
    fn from(error: &ClientError) -> Exit {
        match error {
            ClientError::Invalid(_) | ClientError::Cleartext { .. } => Exit::Usage,
            ClientError::Rejected(rejection) => {
                let not_allowed =
                    [ErrorCode::AuthenticationRequired, ErrorCode::AuthenticationFailed, ErrorCode::Forbidden];
                if not_allowed.iter().any(|code| rejection.is(*code)) { Exit::NotAllowed } else { Exit::Unreachable }
            }
            _ => Exit::Unreachable,
        }
    }
}

/// An error with its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// Its text is printed on one line.
    pub error: anyhow::Error,
}

impl Failure {
    /// No node was reached, or none can decide now.
    pub fn unreachable(error: impl Into<anyhow::Error>) -> Failure {
        Failure { exit: Exit::Unreachable, error: error.into() }
    }

    /// Wrong command line.
    pub fn usage(error: impl Into<anyhow::Error>) -> Failure {
        Failure { exit: Exit::Usage, error: error.into() }
    }
}

/// Gives an error the exit code of its type. An error without one is a bug or a failing machine.
impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let mut error = error.into();
        let exit = match error.downcast_ref::<ClientError>() {
            Some(error) => Exit::from(error),
            None if error.is::<ConfigError>() => Exit::Configuration,
            None => Exit::Internal,
        };
        // The client library says what is wrong. Only the command line knows which flag helps.
        if let Some(ClientError::Cleartext { .. }) = error.downcast_ref() {
            error = error.context("set --allow-insecure-http if you trust the network in between");
        }
        Failure { exit, error }
    }
}

#[cfg(test)]
mod tests;
