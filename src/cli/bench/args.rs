//! What `quorate bench` can be told.

use std::time::Duration;

use clap::ValueEnum;

use super::op::Op;
use crate::cli::values::{self, parse_url};

const EXAMPLES: &str = "\
Nothing is destroyed: all rooms are new ones of this run, and what it holds at the end it gives up or \
leaves to expire. A node takes 600 campaigns a minute from one client; to measure more, start it with a \
higher --campaigns-per-minute.

Example:
  quorate bench --ops renew,status --connections 1,64 \\
    --url http://127.0.0.1:7400,http://127.0.0.1:7410";

/// Arguments of `quorate bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// Nodes to load; connection i uses URL i modulo their number
    #[arg(long, env = "QUORATE_URL", value_name = "URL,…", value_delimiter = ',', value_parser = parse_url,
          default_value = "http://127.0.0.1:7400")]
    pub url: Vec<String>,

    /// How many connections to use at a time, one run for each number
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,16,64",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub connections: Vec<u16>,

    /// How long each run takes, at most 4m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "3s")]
    pub duration: Duration,

    /// What to do
    #[arg(long, value_name = "OP,…", value_delimiter = ',', value_enum, default_value = "campaign,renew,lose,status")]
    pub ops: Vec<Op>,

    /// Held rooms that `lose` and `status` are spread over
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub rooms: u16,

    /// How to print the numbers
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Text,
    Json,
}

/// The rooms of a run are held by leases of 5 minutes that nobody renews: no run may outlast them.
const DURATION_MAX: Duration = Duration::from_secs(4 * 60);

pub fn parse_duration(text: &str) -> Result<Duration, String> {
    match values::parse_duration(text) {
        Ok(duration) if (Duration::from_millis(1)..=DURATION_MAX).contains(&duration) => Ok(duration),
        Ok(_) => Err("write a duration from 1ms to 4m".to_owned()),
        Err(error) => Err(error),
    }
}
