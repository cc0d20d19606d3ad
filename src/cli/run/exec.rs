//! The hidden `quorate exec`: makes the kernel kill it when the guardian ends, and then becomes the command.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;

use crate::cli::exit::{Exit, Failure};

/// Arguments of the hidden `quorate exec`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
This is an internal part of `quorate run`.

Exit codes: those of the command, or
  126  the command can't be executed
  127  the command doesn't exist

Example, as `quorate guardian` does it:
  quorate exec --parent 4711 -- ./report")]
pub struct ExecArgs {
    /// Process id of the parent. When the parent ends, the kernel kills the command
    #[arg(long, value_name = "PID")]
    parent: i32,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Becomes the command. Returns only if that isn't possible.
pub fn exec(args: &ExecArgs) -> Result<Exit, Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the guardian died before the line above, the signal never comes. Then this process has another parent.
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(args.parent) {
        return Ok(Exit::Internal);
    }
    let [program, arguments @ ..] = args.command.as_slice() else { return Ok(Exit::Usage) };
    let error = Command::new(program).args(arguments).exec();
    let program = program.to_string_lossy();
    let _ = writeln!(std::io::stderr(), "quorate: {program} can't be run: {error}; check its name and its mode");
    Ok(Exit::Child(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }))
}
