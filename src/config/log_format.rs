//! How trace events are written: as text or as JSON.

use serde::Deserialize;

/// How trace events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere
    Auto,
    /// One JSON object per line
    Json,
    /// Text for people
    Text,
}

impl LogFormat {
    /// Whether to write JSON.
    pub fn is_json(self, on_terminal: bool) -> bool {
        match self {
            LogFormat::Auto => !on_terminal,
            LogFormat::Json => true,
            LogFormat::Text => false,
        }
    }
}
