//! How a command prints its answer.

use std::io::{IsTerminal, Write};

use serde::Serialize;

use super::exit::Failure;

/// How answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For people
    Text,
    /// JSON, one object a line
    Json,
}

impl Output {
    /// For commands that report as they go: people are at terminals, programs aren't.
    pub fn or_as_fits_stdout(chosen: Option<Output>) -> Output {
        chosen.unwrap_or(if std::io::stdout().is_terminal() { Output::Text } else { Output::Json })
    }
}

/// Prints one answer: as JSON, or as the text made of it.
pub fn print<T: Serialize>(output: Output, answer: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
    let line = match output {
        Output::Text => text(answer),
        Output::Json => serde_json::to_string(answer)?,
    };
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
