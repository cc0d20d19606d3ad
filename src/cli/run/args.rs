//! The arguments of `quorate run`.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::anyhow;

use crate::cli::connect::ConnectArgs;
use crate::cli::exit::Failure;
use crate::cli::lead::LeadArgs;
use crate::cli::output::Output;
use crate::cli::values::{ROOM_HELP, parse_duration};

/// The default of `--kill-after` for leases that are long enough for it.
const KILL_AFTER: Duration = Duration::from_secs(5);

const MORE_HELP: &str = "\
COMMAND is started without a shell, in a process group of its own. So it can't read from the
terminal. It finds in its environment:
  QUORATE_ROOM        the id of the room
  QUORATE_TERM        the number of this leadership, higher than that of every earlier one:
                      send it along with every write
  QUORATE_CANDIDATE   the name under which the room was won
  QUORATE_EXPIRES_AT  when the lease ends if it is never renewed: a date, for people
  QUORATE_STATE_FILE  a JSON file that says how long acting is allowed; each renewal replaces it

The signals TERM, INT, HUP, QUIT, USR1 and USR2 are passed on. The first four also ask the command
to end: it gets TERM, and KILL after the time of --kill-after.

When the command ends, the rest of its process group is ended as well. Then the room is given up.
If the lease can't be renewed, the whole group is ended before 80 % of the lease is over. A process
that has left the group, as daemons do with setsid, is not ended.

Exit codes:
  10   somebody else leads the room (--no-wait)
  11   the room was not won within --wait
  20   the leadership is lost, or may be lost; the command was ended
  64   wrong command line
  69   no node was reached, or none can decide now
  70   internal error
  77   not allowed by the cluster
  126  the command can't be executed
  127  the command doesn't exist
  Any other code is the command's own, or 128 plus the number of a signal: the one that ended the
  command, or the one that ended the wait for the room.

Example:
  quorate run nightly-report --no-wait -- ./report --to /srv/reports";

/// Arguments of `quorate run`.
#[derive(Debug, clap::Args)]
#[command(after_help = MORE_HELP)]
pub struct RunArgs {
    #[arg(help = ROOM_HELP)]
    pub room: String,

    #[command(flatten)]
    pub lead: LeadArgs,

    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help = kill_after_help())]
    kill_after: Option<Duration>,

    /// What to do after the leadership was lost and the command was ended
    #[arg(long, value_enum, value_name = "WHEN", default_value = "never")]
    pub restart: Restart,

    #[command(flatten)]
    pub connect: ConnectArgs,

    /// How to print events on stderr. The JSON is that of `quorate hold`, with events about the command
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub output: Output,

    /// The command to run, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// When to campaign again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Restart {
    /// Exit with code 20
    Never,
    /// Campaign again, and start the command again when the room is won
    OnLoss,
}

impl RunArgs {
    /// How long the command has between TERM and KILL.
    pub fn kill_after(&self) -> Result<Duration, Failure> {
        let ttl = self.lead.candidate.ttl.as_duration();
        let kill_after = self.kill_after.unwrap_or(KILL_AFTER.min(ttl / 5));
        // Authority ends at 80 % of the lease. At least half of that is left for work.
        let limit = ttl * 2 / 5;
        if kill_after >= limit {
            return Err(Failure::usage(anyhow!(
                "--kill-after {} is too long for --ttl {}; make it less than {}, or raise --ttl",
                humantime::format_duration(kill_after),
                humantime::format_duration(ttl),
                humantime::format_duration(limit)
            )));
        }
        Ok(kill_after)
    }
}

fn kill_after_help() -> String {
    let default = humantime::format_duration(KILL_AFTER);
    format!(
        "How long the command has to end between TERM and KILL: less than 40 % of the TTL [default: {default}, or a \
         fifth of the TTL if that is less]"
    )
}
