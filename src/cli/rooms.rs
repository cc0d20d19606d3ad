//! `quorate create`, `status`, `watch`, `campaign` and `resign`: one request each, or one stream.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use futures::StreamExt;
use futures::future::try_join_all;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::connect::{ConnectArgs, advise};
use super::exit::{Exit, Failure};
use super::output::{Output, print};
use super::text::{describe, table};
use super::token_file::{NewTokenFile, read_token};
use super::values::{parse_duration, parse_ttl};
use crate::client::{Attempt, Election};
use crate::wire::{LeaderToken, RoomStatus, WatchEvent};

/// Arguments of `quorate create`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ROOM=$(quorate create)")]
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
As text it is a table on a terminal, and a line for each room elsewhere. As JSON it is an object for each room, one a line.

Example:
  quorate status nightly-report --output json | jq -r .leader.candidate_id")]
pub struct StatusArgs {
    /// The rooms
    #[arg(required = true, value_name = "ROOM")]
    rooms: Vec<String>,

    #[command(flatten)]
    connect: ConnectArgs,

    /// How to print the answers
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Arguments of `quorate watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  quorate watch nightly-report --output json | jq --unbuffered .leader.term")]
pub struct WatchArgs {
    /// The room
    room: String,

    #[command(flatten)]
    connect: ConnectArgs,

    /// How to print the events [default: text on a terminal, json elsewhere]
    #[arg(long, value_enum, value_name = "FORMAT")]
    output: Option<Output>,
}

/// Arguments of `quorate campaign`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The answer is printed as JSON. Nobody renews the lease: use `quorate hold` or `quorate run` for that.
Exit code 0: leads. 10: somebody else does. 11: somebody else did all the time.

Example:
  quorate campaign nightly-report --candidate worker-a --token-file token && ./report
  quorate resign nightly-report --token-file token")]
pub struct CampaignArgs {
    /// The room
    room: String,

    /// Name to campaign under
    #[arg(long, env = "QUORATE_CANDIDATE", value_name = "NAME", default_value_t = super::candidate::own_name(),
          hide_default_value = true)]
    candidate: String,

    /// How long the lease lasts, from 5s to 300s
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, default_value = "30s")]
    ttl: Duration,

    /// What everybody shall see beside the name
    #[arg(long, value_name = "TEXT")]
    metadata: Option<String>,

    /// Wait for the room for so long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0s")]
    wait: Duration,

    /// File for the token, made with mode 600; without it the token is printed with the rest
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Arguments of `quorate resign`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The token is read from --token-file, from the variable QUORATE_LEADER_TOKEN, or from stdin. There is no flag for \
it, since everybody on a machine can read the flags of a process.

Example:
  quorate resign nightly-report --token-file token")]
pub struct ResignArgs {
    /// The room
    room: String,

    /// File with the token; - is stdin
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    connect: ConnectArgs,

    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Makes a room with an id that nobody can guess.
pub fn create(args: &CreateArgs) -> Result<Exit, Failure> {
    let client = args.connect.client()?;
    let room = Runtime::new()?.block_on(client.create())?;
    print(args.output, &room, |room| room.election_id.to_string())?;
    Ok(Exit::Success)
}

/// Says who leads.
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

/// Says who leads, again and again.
pub fn watch(args: &WatchArgs) -> Result<Exit, Failure> {
    let election = args.connect.client()?.election(&args.room)?;
    let output = Output::or_as_fits_stdout(args.output);
    Runtime::new()?.block_on(async {
        // The stream tries for ever. Whoever got the URL wrong wants to know it now.
        election.status().await?;
        let mut events = Box::pin(election.watch());
        while let Some(event) = events.next().await {
            let text =
                |event: &WatchEvent| describe(event.election_id.as_str(), event.leader.as_ref(), event.retry_after_ms);
            if print(output, &event?, text).is_err() {
                // Nobody reads on, as after `| head -1`.
                break;
            }
        }
        Ok(Exit::Success)
    })
}

/// One campaign, and nothing after it.
pub fn campaign(args: &CampaignArgs) -> Result<Exit, Failure> {
    let election = args.connect.client()?.election(&args.room)?;
    let mut campaign = election.campaign(&args.candidate).map_err(advise)?.ttl(args.ttl)?;
    if let Some(metadata) = &args.metadata {
        campaign = campaign.metadata(metadata)?;
    }
    // Before the campaign: a token that can't be kept anywhere blocks the room.
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
            Attempt::Follower(lost) => {
                print(Output::Json, &lost, |_| String::new())?;
                Ok(if args.wait.is_zero() { Exit::OtherLeads } else { Exit::WaitedInVain })
            }
        }
    })
}

/// Gives a room up.
pub fn resign(args: &ResignArgs) -> Result<Exit, Failure> {
    let election = args.connect.client()?.election(&args.room)?;
    let token = LeaderToken::new(read_token(args.token_file.as_deref()).map_err(Failure::usage)?);
    let resigned = Runtime::new()?.block_on(election.resign(token)).map_err(advise)?;
    let Some(resigned) = resigned else {
        let error = anyhow!("the lease had ended before: expired, resigned, or never this token's");
        return Err(Failure { exit: Exit::Lost, error });
    };
    print(args.output, &resigned, |resigned| {
        format!("{}: vacant, term {} is over", resigned.election_id, resigned.previous_term)
    })?;
    Ok(Exit::Success)
}
