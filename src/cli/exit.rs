//! How a command ends: the number that a script gets back, and what the person is told.

use std::process::ExitCode;

use crate::client::ClientError;
use crate::config::ConfigError;
use crate::wire::ErrorCode;

/// How the process ends, as scripts and service managers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: all is done.
    Success,
    /// 10: somebody else leads, and waiting wasn't wanted.
    OtherLeads,
    /// 11: somebody else led all the time.
    WaitedInVain,
    /// 20: the leadership is lost, or it is uncertain whether it is.
    Lost,
    /// 64: the command line makes no sense.
    Usage,
    /// 69: the cluster wasn't reached, or can't serve.
    Unreachable,
    /// 70: a bug, or a machine that fails.
    Internal,
    /// 77: the cluster doesn't let this client do it.
    NotAllowed,
    /// 78: the configuration or the data directory can't be used. A restart won't help.
    Configuration,
    /// The code of a command that was run.
    Child(u8),
    /// 128 and the signal that ended it.
    Signal(u8),
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::OtherLeads => 10,
            Exit::WaitedInVain => 11,
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

/// An error on its way to the person, with the exit code that goes with it.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What to tell.
    pub error: anyhow::Error,
}

impl Failure {
    /// The cluster wasn't reached, or can't serve.
    pub fn unreachable(error: impl Into<anyhow::Error>) -> Failure {
        Failure { exit: Exit::Unreachable, error: error.into() }
    }

    /// The command line makes no sense.
    pub fn usage(error: impl Into<anyhow::Error>) -> Failure {
        Failure { exit: Exit::Usage, error: error.into() }
    }

    /// The configuration or the data directory can't be used.
    pub fn configuration(error: impl Into<anyhow::Error>) -> Failure {
        Failure { exit: Exit::Configuration, error: error.into() }
    }
}

/// What nobody has given another meaning is a bug or a failing machine.
impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        let exit = match error.downcast_ref::<ClientError>() {
            Some(error) => exit_for(error),
            None if error.is::<ConfigError>() => Exit::Configuration,
            None => Exit::Internal,
        };
        Failure { exit, error }
    }
}

/// What a failed request means for a script.
pub fn exit_for(error: &ClientError) -> Exit {
    match error {
        ClientError::Invalid(_) | ClientError::Cleartext { .. } => Exit::Usage,
        ClientError::Refused(refusal) => {
            let not_allowed =
                [ErrorCode::AuthenticationRequired, ErrorCode::AuthenticationFailed, ErrorCode::Forbidden];
            if not_allowed.iter().any(|code| refusal.is(*code)) { Exit::NotAllowed } else { Exit::Unreachable }
        }
        _ => Exit::Unreachable,
    }
}

#[cfg(test)]
mod tests;
