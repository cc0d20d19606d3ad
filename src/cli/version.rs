//! `quorate version` and `quorate completions`: the version of this program, and its commands for a shell.

use std::io::Write;

use serde_json::json;

use super::event::SCHEMA_VERSION;
use super::exit::{Exit, Failure};
use crate::wire::WATCH_SCHEMA_VERSION;

/// Arguments of `quorate version`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The JSON also has the target machine, and the versions of the JSON event formats.

Example:
  quorate version --json")]
pub struct VersionArgs {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Arguments of `quorate completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  quorate completions bash > ~/.local/share/bash-completion/completions/quorate")]
pub struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Prints the version.
pub fn version(args: &VersionArgs) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let line = if args.json {
        let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
        let schemas = json!({"watch": WATCH_SCHEMA_VERSION, "events": SCHEMA_VERSION});
        json!({"name": "quorate", "version": version, "target": target, "schema_versions": schemas}).to_string()
    } else {
        format!("quorate {version}")
    };
    writeln!(std::io::stdout(), "{line}")?;
    Ok(Exit::Success)
}

/// Prints a completion script.
pub fn completions(args: &CompletionsArgs, command: &mut clap::Command) -> Result<Exit, Failure> {
    // The script is made in memory, because the generator panics if it can't write to stdout.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "quorate", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Success)
}
