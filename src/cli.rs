//! The command line: its commands, one file or folder for each group, and how they are run.
//!
//! The list of commands and [`run()`] are in this file, because they are the map of the rest.

mod bench;
mod candidate;
mod connect;
mod emitter;
mod event;
mod exit;
mod healthcheck;
mod hold;
mod lead;
mod output;
mod reporter;
mod rooms;
mod run;
mod serve;
mod signals;
mod text;
mod token_file;
mod values;
mod version;

use std::ffi::OsString;
use std::io::Write;

use clap::{CommandFactory, Parser, Subcommand};

pub use exit::Exit;

const MORE_HELP: &str = "\
Programs compete for rooms: at most one of them leads a room at a time. A cluster of nodes
(`quorate serve`) decides which one. All other commands are clients of the cluster.

A DURATION is a number with a unit, such as 500ms, 30s or 2m.

Example, in two terminals:
  quorate serve
  quorate run nightly-report -- sh -c 'echo I lead in term $QUORATE_TERM; sleep 60'
";

/// Leader election over HTTP, by a cluster that survives the loss of a node.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, disable_help_subcommand = true,
          after_help = format!("{MORE_HELP}\n{}", exit::CODES))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node of a cluster
    Serve(Box<serve::ServeArgs>),
    /// Lead a room, and run a command while this process leads
    Run(Box<run::RunArgs>),
    /// Lead a room for as long as possible, and print each change as an event
    Hold(Box<hold::HoldArgs>),
    /// Create a room with an id that nobody can guess
    Create(rooms::CreateArgs),
    /// Show who leads rooms
    Status(rooms::StatusArgs),
    /// Show who leads a room, now and after each change
    Watch(rooms::WatchArgs),
    /// Try to win a room, and print the answer; nothing renews the lease
    Campaign(rooms::CampaignArgs),
    /// Give up a room that `campaign` has won
    Resign(rooms::ResignArgs),
    /// Measure the operations per second and the latency of a running cluster
    Bench(bench::BenchArgs),
    /// Check whether nodes are ready
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Print a script that completes quorate commands in a shell
    Completions(version::CompletionsArgs),
    /// Print the version
    Version(version::VersionArgs),
    /// Internal: start the command of `run`, and end it in time
    #[command(hide = true)]
    Guardian(run::guardian::GuardianArgs),
    /// Internal: become the command of `run`
    #[command(hide = true)]
    Exec(run::exec::ExecArgs),
}

/// Runs the command that the arguments name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return print_instead(&error),
    };
    let result = match cli.command {
        Command::Serve(args) => serve::run(*args, &known_variables()).map(|()| Exit::Success),
        Command::Run(args) => run::run(&args),
        Command::Hold(args) => hold::run(&args),
        Command::Create(args) => rooms::create(&args),
        Command::Status(args) => rooms::status(&args),
        Command::Watch(args) => rooms::watch(&args),
        Command::Campaign(args) => rooms::campaign(&args),
        Command::Resign(args) => rooms::resign(&args),
        Command::Bench(args) => bench::run(&args).map(|()| Exit::Success),
        Command::Healthcheck(args) => healthcheck::run(&args).map(|()| Exit::Success),
        Command::Completions(args) => version::completions(&args, &mut Cli::command()),
        Command::Version(args) => version::version(&args),
        Command::Guardian(args) => run::guardian::guard(&args),
        Command::Exec(args) => run::exec::exec(&args),
    };
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            report(&failure.error);
            failure.exit
        }
    }
}

/// Prints what clap returns instead of a command: the help, the version, or a usage error.
fn print_instead(error: &clap::Error) -> Exit {
    // A failure is ignored: the exit code says enough if the stream is closed.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage } else { Exit::Success }
}

/// Reports why a command failed: a node does it by a trace event, any other command by a line on stderr.
fn report(error: &anyhow::Error) {
    let error = in_one_line(error);
    if tracing::dispatcher::has_been_set() {
        tracing::error!(error, "the node stops");
    } else {
        // If stderr is closed, the exit code still says it.
        let _ = writeln!(std::io::stderr(), "quorate: {error}");
    }
}

/// An error with its causes. A cause that is part of the text already isn't repeated.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

/// Every environment variable that a command reads, or that `quorate run` sets.
fn known_variables() -> Vec<String> {
    let cli = Cli::command();
    let arguments = cli.get_subcommands().flat_map(|command| command.get_arguments());
    let read = arguments.filter_map(|argument| argument.get_env()).map(|name| name.to_string_lossy().into_owned());
    read.chain([token_file::TOKEN_VARIABLE].into_iter().chain(run::VARIABLES).map(ToOwned::to_owned)).collect()
}

#[cfg(test)]
mod tests;
