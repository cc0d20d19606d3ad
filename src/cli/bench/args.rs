//! The arguments of `quorate bench`.

use std::time::Duration;

use super::op::Op;
use crate::cli::connect::UrlArgs;
use crate::cli::output::Output;
use crate::cli::values;
use crate::domain::LeaseDuration;

const MORE_HELP: &str = "\
Runs each operation once with each number of connections, and prints one row for each run. If --url
names several nodes, the connections are spread over them.

The benchmark uses new rooms only, and doesn't touch existing ones. After each run it gives the
rooms up, or lets their leases expire.

Each node limits how many campaigns one client may send per minute. To measure more, start the nodes
with a higher --campaigns-per-minute.

Exit codes:
  0   all runs are done
  64  wrong command line
  69  no node was reached, or in some run no operation succeeded
  70  internal error

Example:
  quorate bench --ops renew,status --connections 1,64 \\
    --url http://127.0.0.1:7400,http://127.0.0.1:7410";

/// Arguments of `quorate bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = MORE_HELP)]
pub struct BenchArgs {
    #[command(flatten)]
    pub nodes: UrlArgs,

    /// Numbers of connections, separated by commas: each from 1 to 1024. Each number gets its own run
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,16,64",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub connections: Vec<u16>,

    /// How long each run takes: from 1ms to 4m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "3s")]
    pub duration: Duration,

    /// Operations to measure, separated by commas
    #[arg(long, value_name = "OP,…", value_delimiter = ',', value_enum, default_value = "campaign,renew,lose,status")]
    pub ops: Vec<Op>,

    /// Number of rooms for `lose` and `status`: from 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub rooms: u16,

    /// How to print the numbers
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub output: Output,
}

/// The rooms of a run are held by leases of the longest duration, which are not renewed. A run must end before its
/// leases do, with a minute to spare for its preparation.
const DURATION_MAX: Duration = Duration::from_secs(LeaseDuration::SECONDS_MAX as u64 - 60);

/// Reads the value of `--duration`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    match values::parse_duration(text) {
        Ok(duration) if (Duration::from_millis(1)..=DURATION_MAX).contains(&duration) => Ok(duration),
        Ok(_) => Err(format!("write a duration from 1ms to {}", humantime::format_duration(DURATION_MAX))),
        Err(error) => Err(error),
    }
}
