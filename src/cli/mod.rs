//! What a person types, and what is done about it.

mod bench;
mod connect;
mod events;
mod exit;
mod healthcheck;
mod hold;
mod lead;
mod rooms;
mod run;
pub mod serve;
mod token_file;
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
        Command::Serve(args) => serve::run(*args).map(|()| Exit::Success),
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

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// For commands that call nodes. A proxy from the environment is for the outside world, not for the nodes.
fn http_client(request_deadline: std::time::Duration) -> reqwest::Result<reqwest::Client> {
    let agent = concat!("quorate/", env!("CARGO_PKG_VERSION"));
    reqwest::Client::builder().no_proxy().user_agent(agent).timeout(request_deadline).build()
}

/// Reads a URL for `--url`: plain HTTP, without a slash at its end.
fn parse_url(text: &str) -> Result<String, String> {
    match reqwest::Url::parse(text) {
        Ok(url) if url.scheme() == "http" && url.has_host() => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err("write a URL as http://127.0.0.1:7400".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(line: &str) -> Exit {
        run(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_and_version_are_a_success() {
        for line in ["quorate --help", "quorate --version", "quorate serve --help", "quorate bench -h"] {
            assert_eq!(exit(line), Exit::Success, "{line}");
        }
    }

    #[test]
    fn a_wrong_command_line_is_a_usage_error() {
        let lines = ["quorate", "quorate dance", "quorate serve --no-such-flag", "quorate bench --connections 0"];
        for line in lines {
            assert_eq!(exit(line), Exit::Usage, "{line}");
        }
        assert_eq!(exit("quorate serve --campaigns-per-minute many"), Exit::Usage);
        assert_eq!(exit("quorate healthcheck --url https://example.com"), Exit::Usage);
    }

    #[test]
    fn a_configuration_that_cannot_work_has_its_own_code() {
        assert_eq!(exit("quorate serve --name not/a/name"), Exit::Configuration);
        assert_eq!(exit("quorate serve --config /no/such/file.toml"), Exit::Configuration);
    }

    #[test]
    fn a_cause_is_told_once() {
        let cause = || std::io::Error::other("the disk is gone");
        let quoted = crate::node::NodeError::Listen {
            flag: "--listen",
            address: "127.0.0.1:7400".parse().unwrap(),
            source: cause(),
        };
        assert_eq!(in_one_line(&quoted.into()).matches("the disk is gone").count(), 1);
        let wrapped = anyhow::Error::from(cause()).context("no start");
        assert_eq!(in_one_line(&wrapped), "no start: the disk is gone");
    }

    #[test]
    fn a_cluster_that_is_not_there_has_its_own_code() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(exit(&format!("quorate healthcheck --url http://{free}")), Exit::Unreachable);
        assert_eq!(exit(&format!("quorate bench --duration 10ms --url http://{free}")), Exit::Unreachable);
    }

    #[test]
    fn the_variables_of_all_commands_are_known() {
        let known = known_variables();
        for name in ["QUORATE_CONFIG", "QUORATE_PEERS", "QUORATE_LOG", "QUORATE_URL", "QUORATE_TERM"] {
            assert!(known.iter().any(|other| other == name), "{name}");
        }
    }
}
