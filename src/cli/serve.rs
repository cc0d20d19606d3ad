//! `quorate serve`: run a node.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::runtime::Runtime;
use tracing::warn;

use super::exit::{Exit, Failure};
use crate::config::{Config, RawConfig, unknown_variables};
use crate::{node, telemetry};

const MORE_HELP: &str = "\
Each flag can also be set by an environment variable, or by a key in the TOML file of --config. Both
are named after the flag: --data-dir is QUORATE_DATA_DIR and data_dir. A flag wins over its
variable, and the variable over the file.

SIGTERM and SIGINT stop the node. Stopping a node doesn't remove it from the cluster.

Exit codes:
  0   the node was stopped
  64  wrong command line
  70  internal error: a bug, or this machine fails
  78  wrong configuration or unusable data directory: a restart does not help

Example, a cluster of one node on this machine:
  quorate serve

Example, the first node of three:
  quorate serve --name n1 --listen 0.0.0.0:7400 --peer-listen 0.0.0.0:7401 \\
    --peers n1=a.example:7401,n2=b.example:7401,n3=c.example:7401 \\
    --cluster-secret-file secret";

/// Arguments of `quorate serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = MORE_HELP)]
pub struct ServeArgs {
    /// TOML file with settings [default: none]
    #[arg(long, env = "QUORATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: RawConfig,
}

/// Runs a node until it is told to stop. It warns about variables that look like settings and are not in
/// `known_variables`.
pub fn run(args: ServeArgs, known_variables: &[String]) -> Result<(), Failure> {
    let config = Config::load(args.settings, args.config.as_deref())?;
    telemetry::start(&config.log_level, config.log_format.is_json(std::io::stderr().is_terminal()))?;
    let set = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    for sentence in unknown_variables(known_variables, set) {
        warn!("{sentence}");
    }
    Runtime::new()?.block_on(start_node(config))
}

async fn start_node(config: Config) -> Result<(), Failure> {
    let when_ready = |listen: SocketAddr| {
        // A failure is ignored: the node serves even if stdout is closed.
        let _ = writeln!(std::io::stdout(), "{}", welcome(&format!("http://{listen}")));
    };
    node::run(config, when_ready).await.map_err(|error| {
        let exit = if error.needs_an_operator() { Exit::Configuration } else { Exit::Internal };
        Failure { exit, error: error.into() }
    })
}

/// Commands that a person can paste into another terminal, once the node at `url` is ready.
fn welcome(url: &str) -> String {
    let post = "curl -sw '\\n' -H 'content-type: application/json'";
    let token = "sed 's/.*\"leader_token\":\"\\([^\"]*\\)\".*/\\1/'";
    [
        format!("quorate is ready at {url}. To lead the room hello-world, paste into another terminal:"),
        format!("  ROOM={url}/elections/hello-world"),
        format!("  WON=$({post} $ROOM/campaign -d '{{\"candidate_id\":\"me\",\"ttl_seconds\":60}}'); echo \"$WON\""),
        "  curl -sw '\\n' $ROOM".to_owned(),
        format!("  TOKEN=$(echo \"$WON\" | {token})"),
        format!("  {post} $ROOM/renew -d \"{{\\\"leader_token\\\":\\\"$TOKEN\\\"}}\""),
        format!("To create a room with an id that nobody can guess: curl -sw '\\n' -X POST {url}/elections"),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests;
