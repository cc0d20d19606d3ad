//! What a person types, and what is done about it.

mod bench;
mod candidate;
mod connect;
mod events;
mod exit;
mod healthcheck;
mod hold;
mod lead;
mod output;
mod rooms;
mod run;
pub mod serve;
mod signals;
mod text;
mod token_file;
mod values;
mod version;

use std::ffi::OsString;
use std::io::Write;

use clap::{CommandFactory, Parser, Subcommand};

pub use exit::{Exit, Failure};

/// Leader election as a service that survives the loss of a node.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node
    Serve(Box<serve::ServeArgs>),
    /// Lead a room, and run a command for as long as that lasts
    Run(Box<run::RunArgs>),
    /// Lead a room, and print an event for each change
    Hold(Box<hold::HoldArgs>),
    /// Make a room with an id that nobody can guess
    Create(rooms::CreateArgs),
    /// Say who leads a room
    Status(rooms::StatusArgs),
    /// Say who leads a room, at each change
    Watch(rooms::WatchArgs),
    /// Campaign once for a room, and print the answer
    Campaign(rooms::CampaignArgs),
    /// Give up a room, by its token
    Resign(rooms::ResignArgs),
    /// Measure a running cluster with a bounded load
    Bench(bench::BenchArgs),
    /// Ask nodes whether they can serve: exit code 0 if all can, 69 if not
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Print a script that completes this command line in a shell
    Completions(version::CompletionsArgs),
    /// Print the version
    Version(version::VersionArgs),
    /// The process between `run` and its command
    #[command(hide = true)]
    Guardian(run::guardian::GuardianArgs),
    /// What becomes the command of `run`
    #[command(hide = true)]
    Exec(run::guardian::ExecArgs),
}

/// Does what the arguments ask for, and says how it ended.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
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
        Command::Exec(args) => run::guardian::exec(&args),
    };
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            report(&failure.error);
            failure.exit
        }
    }
}

/// Help and version are answers; all else that clap returns is a usage error.
fn refuse(error: &clap::Error) -> Exit {
    // If stdout is closed, nobody reads the help.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage } else { Exit::Success }
}

/// A node's last words belong among its trace events; another command's are for the person.
fn report(error: &anyhow::Error) {
    let error = in_one_line(error);
    if tracing::dispatcher::has_been_set() {
        tracing::error!(error, "quorate ends");
    } else {
        // If stderr is closed, the exit code has to do.
        let _ = writeln!(std::io::stderr(), "quorate: {error}");
    }
}

/// An error with its causes. Many errors name their cause themselves; it isn't said a second time then.
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

/// Every environment variable that some command reads, or sets for the command that it runs.
fn known_variables() -> Vec<String> {
    let cli = Cli::command();
    let arguments = cli.get_subcommands().flat_map(|command| command.get_arguments());
    let read = arguments.filter_map(|argument| argument.get_env()).map(|name| name.to_string_lossy().into_owned());
    read.chain([token_file::TOKEN_VARIABLE].into_iter().chain(run::VARIABLES).map(ToOwned::to_owned)).collect()
}

#[cfg(test)]
mod tests;
