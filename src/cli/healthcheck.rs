//! `quorate healthcheck`: for containers without a shell, and for scripts.

use std::io::Write;
use std::time::Duration;

use anyhow::anyhow;
use tokio::runtime::Runtime;

use super::connect::http_client;
use super::exit::Failure;
use super::values::{parse_duration, parse_url};

/// Arguments of `quorate healthcheck`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  quorate healthcheck --url http://127.0.0.1:7400")]
pub struct HealthcheckArgs {
    /// Nodes to ask
    #[arg(long, env = "QUORATE_URL", value_name = "URL,…", value_delimiter = ',', value_parser = parse_url,
          default_value = "http://127.0.0.1:7400")]
    url: Vec<String>,

    /// How long to wait for an answer
    #[arg(long = "timeout", value_name = "DURATION", value_parser = parse_duration, default_value = "3s")]
    request_deadline: Duration,
}

/// Asks each node whether it can serve a linearizable request now.
pub fn run(args: &HealthcheckArgs) -> Result<(), Failure> {
    Runtime::new()?.block_on(ask(args))
}

async fn ask(args: &HealthcheckArgs) -> Result<(), Failure> {
    let client = http_client(args.request_deadline)?;
    for url in &args.url {
        let answer = client.get(format!("{url}/readyz")).send().await.map_err(Failure::unreachable)?;
        let status = answer.status();
        if !status.is_success() {
            let reason = answer.text().await.unwrap_or_default();
            return Err(Failure::unreachable(anyhow!("{url} is not ready ({status}): {}", reason.trim())));
        }
        writeln!(std::io::stdout(), "{url} is ready")?;
    }
    Ok(())
}
