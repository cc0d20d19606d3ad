//! `quorate healthcheck`: asks nodes whether they are ready, for scripts and for containers without a shell.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::runtime::Runtime;

use super::connect::{UrlArgs, http_client};
use super::exit::Failure;
use super::values::parse_duration;

/// Arguments of `quorate healthcheck`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A node is ready if it can serve a linearizable request now: it must reach a majority of the nodes.

Exit codes:
  0   all nodes are ready
  64  wrong command line
  69  a node was not reached, or is not ready
  70  internal error

Example:
  quorate healthcheck --url http://127.0.0.1:7400")]
pub struct HealthcheckArgs {
    #[command(flatten)]
    nodes: UrlArgs,

    /// How long to wait for the answer of each node
    #[arg(long = "timeout", value_name = "DURATION", value_parser = parse_duration, default_value = "3s")]
    request_deadline: Duration,
}

/// Checks one node after the other, and fails at the first one that isn't ready.
pub fn run(args: &HealthcheckArgs) -> Result<(), Failure> {
    Runtime::new()?.block_on(check(args))
}

async fn check(args: &HealthcheckArgs) -> Result<(), Failure> {
    let client = http_client(args.request_deadline)?;
    for url in &args.nodes.url {
        let answer = client.get(format!("{url}/readyz")).send().await;
        let answer = answer
            .with_context(|| format!("{url} was not reached; check --url, and whether the node runs"))
            .map_err(Failure::unreachable)?;
        let status = answer.status();
        if !status.is_success() {
            let reason = answer.text().await.unwrap_or_default();
            return Err(Failure::unreachable(anyhow!("{url} is not ready ({status}): {}", reason.trim())));
        }
        writeln!(std::io::stdout(), "{url} is ready")?;
    }
    Ok(())
}
