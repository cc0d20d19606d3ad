//! What `quorate run` can be told.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::anyhow;

use crate::cli::connect::ConnectArgs;
use crate::cli::exit::Failure;
use crate::cli::lead::LeadArgs;
use crate::cli::output::Output;
use crate::cli::values::parse_duration;

/// How long the command has between TERM and KILL if nobody says otherwise, where the lease allows for it.
const KILL_AFTER: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
The command gets QUORATE_ROOM, QUORATE_TERM, QUORATE_CANDIDATE, QUORATE_EXPIRES_AT and QUORATE_STATE_FILE, a JSON file \
that is replaced at each renewal. It runs without a shell, in a process group of its own (so it can't read from the \
terminal). TERM, INT, HUP, QUIT, USR1 and USR2 are passed on; the first four also start the time of --kill-after. When \
it ends, what is left of its group is ended too, and the room is given up. What leaves the group (setsid, as daemons \
do) is out of reach.

Exit code: the command's, or 128 and the number of the signal that ended it. 10: somebody else leads (--no-wait). 11: \
not won within --wait. 20: authority was lost; the command was ended first. 126, 127: the command can't be run.

Example:
  quorate run nightly-report --no-wait -- ./report --to /srv/reports";

/// Arguments of `quorate run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// The room
    pub room: String,

    #[command(flatten)]
    pub lead: LeadArgs,

    /// How long the command has to end between TERM and KILL; less than 40 % of the TTL [default: 5s, or a fifth of
    /// the TTL if that is less]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    kill_after: Option<Duration>,

    /// Campaign again after a loss, or end
    #[arg(long, value_enum, value_name = "WHEN", default_value = "never")]
    pub restart: Restart,

    #[command(flatten)]
    pub connect: ConnectArgs,

    /// How to tell, on stderr, what happens [default: text; json: the events of `quorate hold`]
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub output: Output,

    /// What to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// When to campaign again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Restart {
    /// A loss is the end
    Never,
    /// After a loss the command was ended; it is started again with the next leadership
    OnLoss,
}

impl RunArgs {
    /// Half of what the authority lasts must be left for working.
    pub fn kill_after(&self) -> Result<Duration, Failure> {
        let ttl = self.lead.ttl;
        let kill_after = self.kill_after.unwrap_or(KILL_AFTER.min(ttl / 5));
        if kill_after >= ttl * 2 / 5 {
            return Err(Failure::usage(anyhow!(
                "--kill-after {}: with --ttl {} it must be less than {}",
                humantime::format_duration(kill_after),
                humantime::format_duration(ttl),
                humantime::format_duration(ttl * 2 / 5)
            )));
        }
        Ok(kill_after)
    }
}
