//! `quorate create`, `status`, `watch`, `campaign` and `resign`: each sends one request, or reads one stream.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use futures::StreamExt;
use futures::future::try_join_all;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::candidate::CandidateArgs;
use super::connect::ConnectArgs;
use super::exit::{Exit, Failure};
use super::output::{Output, print};
use super::text::{describe, table};
use super::token_file::{NewTokenFile, read_token};
use super::values::{ROOM_HELP, parse_duration};
use crate::client::{Attempt, Election};
use crate::wire::{LeaderToken, RoomStatus, WatchEvent};

/// Arguments of `quorate create`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints the id of the room. A room doesn't have to be created before it is used: any id will do. But
programs that don't know the id of a created room can't compete for it.

Exit codes: 0 for success; for others see `quorate --help`.

Example:
  ROOM=$(quorate create)
  quorate run $ROOM -- ./report")]
pub struct CreateArgs {
    #[command(flatten)]
    connect: ConnectArgs,

    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Arguments of `quorate status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
As text, the answer is a table on a terminal, and otherwise one line per room. As JSON, it is one
object per room, each on a line. A room that nobody leads is vacant.

Exit codes: 0 for success, also if a room is vacant; for others see `quorate --help`.

Example:
  quorate status nightly-report --output json | jq -r .leader.candidate_id")]
pub struct StatusArgs {
    /// Ids of the rooms: each has 8 to 64 ASCII letters, digits, - or _
    #[arg(required = true, value_name = "ROOM")]
    rooms: Vec<String>,

    #[command(flatten)]
    connect: ConnectArgs,

    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Arguments of `quorate watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints one line now, and one for each change. If a node fails, the next one is asked. The command
goes on until a signal ends it, or until its output is closed.

Exit codes: 0 for success; for others see `quorate --help`.

Example:
  quorate watch nightly-report --output json | jq --unbuffered .leader.term")]
pub struct WatchArgs {
    #[arg(help = ROOM_HELP)]
    room: String,

    #[command(flatten)]
    connect: ConnectArgs,

    /// How to print each line [default: text on a terminal, otherwise json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    output: Option<Output>,
}

/// Arguments of `quorate campaign`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints the answer as JSON. If the room was won, the answer contains the leader_token, unless
--token-file names a file for it. The token is needed to renew or resign. This command does not
renew the lease: use `quorate hold` or `quorate run` to keep a room.

Exit codes:
  0   the room is won
  10  somebody else leads the room
  11  the room was not won within --wait
  64  wrong command line
  69  no node was reached, or none can decide now; the room may be won nevertheless
  70  internal error
  77  not allowed by the cluster

Example:
  quorate campaign nightly-report --candidate worker-a --token-file token && ./report
  quorate resign nightly-report --token-file token")]
pub struct CampaignArgs {
    #[arg(help = ROOM_HELP)]
    room: String,

    #[command(flatten)]
    candidate: CandidateArgs,

    /// How long to wait for the room if somebody else leads it
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0s")]
    wait: Duration,

    /// File in which to keep the leader_token. It is created or replaced, for its owner alone (mode 600) [default: the
    /// token is printed with the answer]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Arguments of `quorate resign`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The token is the leader_token that `quorate campaign` got. There is no flag for the token itself,
because every user of a machine can read the arguments of a process.

Exit codes:
  0   the room is vacant now
  20  the lease had ended before
  64  wrong command line, or no token
  69  no node was reached, or none can decide now
  70  internal error
  77  not allowed by the cluster

Example:
  quorate resign nightly-report --token-file token")]
pub struct ResignArgs {
    #[arg(help = ROOM_HELP)]
    room: String,

    /// File with the token, or - for stdin [default: the variable QUORATE_LEADER_TOKEN, or stdin if it is not set]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    connect: ConnectArgs,

    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Creates a room with an id that nobody can guess.
pub fn create(args: &CreateArgs) -> Result<Exit, Failure> {
    let client = args.connect.client()?;
    let room = Runtime::new()?.block_on(client.create())?;
    print(args.output, &room, |room| room.election_id.to_string())?;
    Ok(Exit::Success)
}

/// Shows who leads rooms.
pub fn status(args: &StatusArgs) -> Result<Exit, Failure> {
    let client = args.connect.client()?;
    let elections: Vec<_> = args.rooms.iter().map(|room| client.election(room)).collect::<Result<_, _>>()?;
    let rooms = Runtime::new()?.block_on(try_join_all(elections.iter().map(Election::status)))?;
    if args.output == Output::Text && std::io::stdout().is_terminal() {
        write!(std::io::stdout(), "{}", table(&rooms))?;
        return Ok(Exit::Success);
    }
    for room in &rooms {
        print(args.output, room, |RoomStatus { election_id, leader, retry_after_ms, .. }| {
            describe(election_id.as_str(), leader.as_ref(), *retry_after_ms)
        })?;
    }
    Ok(Exit::Success)
}

/// Shows who leads a room, now and after each change.
pub fn watch(args: &WatchArgs) -> Result<Exit, Failure> {
    let election = args.connect.client()?.election(&args.room)?;
    let output = Output::for_events(args.output);
    Runtime::new()?.block_on(async {
        // The stream never gives up. This first request fails if no node can be reached, because of a wrong URL, for
        // example.
        election.status().await?;
        let mut events = Box::pin(election.watch());
        while let Some(event) = events.next().await {
            let text =
                |event: &WatchEvent| describe(event.election_id.as_str(), event.leader.as_ref(), event.retry_after_ms);
            if print(output, &event?, text).is_err() {
                // The reader has closed the pipe, as `head -1` does after one line.
                break;
            }
        }
        Ok(Exit::Success)
    })
}

/// Campaigns, and leaves the lease to the caller.
pub fn campaign(args: &CampaignArgs) -> Result<Exit, Failure> {
    let election = args.connect.client()?.election(&args.room)?;
    let campaign = args.candidate.campaign(&election)?;
    // The file is created before the campaign. Otherwise a failure would leave the room taken, and its token lost.
    let token_file = args.token_file.as_deref().map(NewTokenFile::beside).transpose()?;
    Runtime::new()?.block_on(async {
        match campaign.unattended(args.wait).await? {
            Attempt::Won(granted) => {
                let mut answer = serde_json::to_value(&granted.won)?;
                if let Some(file) = token_file {
                    if let Value::Object(fields) = &mut answer {
                        fields.remove("leader_token");
                    }
                    if let Err(error) = file.keep(granted.won.leader_token.expose_text()) {
                        let _ = election.resign(granted.won.leader_token).await;
                        return Err(error.into());
                    }
                }
                print(Output::Json, &answer, Value::to_string)?;
                Ok(Exit::Success)
            }
            Attempt::Follower(follower) => {
                print(Output::Json, &follower, |_| String::new())?;
                Ok(if args.wait.is_zero() { Exit::OtherLeads } else { Exit::NotWonInTime })
            }
        }
    })
}

/// Gives a room up.
pub fn resign(args: &ResignArgs) -> Result<Exit, Failure> {
    let election = args.connect.client()?.election(&args.room)?;
    let token = LeaderToken::new(read_token(args.token_file.as_deref()).map_err(Failure::usage)?);
    let resigned = Runtime::new()?.block_on(election.resign(token))?;
    let Some(resigned) = resigned else {
        let error = anyhow!(
            "the token has no lease in this room: the lease has expired, was given up, or belongs to another room; \
             `quorate status` shows who leads"
        );
        return Err(Failure { exit: Exit::Lost, error });
    };
    print(args.output, &resigned, |resigned| {
        format!("{}: vacant, term {} is over", resigned.election_id, resigned.previous_term)
    })?;
    Ok(Exit::Success)
}
