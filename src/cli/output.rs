//! How a command prints its answer.

use std::io::{IsTerminal, Write};

use serde::Serialize;

use super::exit::Failure;

/// The value of `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For people
    Text,
    /// For programs: JSON, one object per line
    Json,
}

impl Output {
    /// The format for a stream of events: the chosen one, or else text on a terminal and JSON elsewhere.
    pub fn for_events(chosen: Option<Output>) -> Output {
        chosen.unwrap_or(if std::io::stdout().is_terminal() { Output::Text } else { Output::Json })
    }
}

/// Prints an answer on one line: as JSON, or as the text that `text` makes.
pub fn print<T: Serialize>(output: Output, answer: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
    let line = match output {
        Output::Text => text(answer),
        Output::Json => serde_json::to_string(answer)?,
    };
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
