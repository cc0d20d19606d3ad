//! Runs a benchmark and prints its numbers.

use std::io::Write;

use anyhow::anyhow;
use tokio::runtime::Runtime;

use super::args::BenchArgs;
use super::load::Load;
use super::report::Report;
use crate::cli::exit::Failure;
use crate::cli::output::Output;

/// Runs every operation with every number of connections, and prints the numbers.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    Runtime::new()?.block_on(measure(args))
}

async fn measure(args: &BenchArgs) -> Result<(), Failure> {
    let urls = &args.nodes.url;
    let load = Load::new(urls.clone(), args.duration, usize::from(args.rooms))?;
    let mut report = Report::new(urls.clone(), args.duration);
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
        return Err(Failure::unreachable(anyhow!(
            "in some run no operation succeeded; see its errors in the report, and check the nodes"
        )));
    }
    Ok(())
}
