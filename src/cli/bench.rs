//! `quorate bench`: how much a running cluster does, and how long each caller waits for it.
//!
//! Each connection asks, waits for the answer and asks again. So the load is bounded by their number, and a
//! cluster that is stuck is asked less: the numbers show what callers who wait would see, not what a flood
//! would. Latency goes from before the request is sent until its answer is read; one connection shows it
//! best, many show throughput.

mod load;
mod report;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::time::Duration;

use anyhow::anyhow;
use clap::ValueEnum;
use tokio::runtime::Runtime;

use super::exit::Failure;
use super::values::{self, parse_url};
use load::Load;
use report::Report;

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
    url: Vec<String>,

    /// How many connections to use at a time, one run for each number
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,16,64",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: Vec<u16>,

    /// How long each run takes, at most 4m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "3s")]
    duration: Duration,

    /// What to do
    #[arg(long, value_name = "OP,…", value_delimiter = ',', value_enum, default_value = "campaign,renew,lose,status")]
    ops: Vec<Op>,

    /// Held rooms that `lose` and `status` are spread over
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rooms: u16,

    /// How to print the numbers
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: Output,
}

/// What a connection does over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Op {
    /// Win a room that is new each time; its lease of 5 s is left to expire, so that only campaigns are measured
    Campaign,
    /// Renew a lease of the connection's own
    Renew,
    /// Campaign for a room that somebody else holds
    Lose,
    /// Read a room that somebody holds
    Status,
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Op::Campaign => "campaign",
            Op::Renew => "renew",
            Op::Lose => "lose",
            Op::Status => "status",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// The rooms of a run are held by leases of 5 minutes that nobody renews: no run may outlast them.
const DURATION_MAX: Duration = Duration::from_secs(4 * 60);

fn parse_duration(text: &str) -> Result<Duration, String> {
    match values::parse_duration(text) {
        Ok(duration) if (Duration::from_millis(1)..=DURATION_MAX).contains(&duration) => Ok(duration),
        Ok(_) => Err("write a duration from 1ms to 4m".to_owned()),
        Err(error) => Err(error),
    }
}

/// Runs every op with every number of connections, and prints the numbers.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    Runtime::new()?.block_on(measure(args))
}

async fn measure(args: &BenchArgs) -> Result<(), Failure> {
    let load = Load::new(args.url.clone(), args.duration, usize::from(args.rooms))?;
    let mut report = Report::new(args.url.clone(), args.duration);
    let mut stdout = std::io::stdout();
    if args.output == Output::Text {
        writeln!(stdout, "{}", report.heading())?;
    }
    for &op in &args.ops {
        for &connections in &args.connections {
            let sample = load.run(op, usize::from(connections)).await.map_err(Failure::unreachable)?;
            let row = report.add(op.name(), usize::from(connections), sample);
            if args.output == Output::Text {
                writeln!(stdout, "{row}")?;
            }
        }
    }
    match args.output {
        Output::Text => report.notes().iter().try_for_each(|note| writeln!(stdout, "{note}"))?,
        Output::Json => writeln!(stdout, "{}", report.to_json())?,
    }
    if report.has_empty_run() {
        return Err(Failure::unreachable(anyhow!("in some run nothing succeeded")));
    }
    Ok(())
}
