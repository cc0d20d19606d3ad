//! Campaigns for a room, for `quorate hold` and `quorate run`.

use std::sync::Arc;
use std::time::Duration;

use super::candidate::CandidateArgs;
use super::connect::ConnectArgs;
use super::emitter::Emitter;
use super::event::{Event, EventName};
use super::exit::{Exit, Failure};
use super::signals::Signals;
use super::values::parse_duration;
use crate::client::{Attempt, Client, Election, Leadership, Waiting};
use crate::wire::Follower;

/// The candidate, and how long it waits for the room.
#[derive(Debug, clap::Args)]
pub struct LeadArgs {
    #[command(flatten)]
    pub candidate: CandidateArgs,

    /// How long to wait for the room. If it isn't won by then, exit with code 11 [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub wait: Option<Duration>,

    /// Don't wait: if somebody else leads, exit at once with code 10
    #[arg(long, conflicts_with = "wait")]
    pub no_wait: bool,
}

/// The room to lead, and the nodes that decide about it.
pub struct Target {
    /// The client, which knows the node that answered last.
    pub client: Client,
    /// The room.
    pub election: Election,
}

impl Target {
    /// A room at these nodes. Nothing is sent yet.
    pub fn new(connect: &ConnectArgs, room: &str) -> Result<Target, Failure> {
        let client = connect.client()?;
        let election = client.election(room)?;
        Ok(Target { client, election })
    }
}

/// How a campaign ended.
pub enum Led {
    /// The room is won.
    Won(Leadership),
    /// The room isn't won. The command ends with this exit code.
    Not(Exit),
}

/// Campaigns until `args` say to stop, and reports what happens. A signal ends the campaign.
pub async fn lead(
    target: &Target,
    args: &LeadArgs,
    emitter: &Arc<Emitter>,
    signals: &mut Signals,
) -> Result<Led, Failure> {
    let client = &target.client;
    let (waiting_emitter, waiting_client) = (emitter.clone(), client.clone());
    let campaign = args.candidate.campaign(&target.election)?.on_waiting(move |waiting| {
        let event = match waiting {
            Waiting::OtherLeads(follower) => other_leads(follower),
            Waiting::Trouble(error) => Event::of_failure(EventName::Waiting, error),
        };
        // A failure is ignored: if nobody reads the events, `quorate hold` notices it at its first event as leader, and
        // `quorate run` goes on.
        let _ = waiting_emitter.emit(waiting_client.server(), None, event);
    });
    let attempt = async {
        match args.wait {
            _ if args.no_wait => campaign.try_once().await,
            Some(patience) => campaign.wait_timeout(patience).await,
            None => campaign.wait().await.map(Attempt::Won),
        }
    };
    let attempt = tokio::select! {
        biased;
        number = signals.end() => return Ok(Led::Not(Exit::Signal(number))),
        attempt = attempt => attempt,
    };
    match attempt {
        Ok(Attempt::Won(leadership)) => Ok(Led::Won(leadership)),
        Ok(Attempt::Follower(follower)) => {
            let _ = emitter.emit(client.server(), None, other_leads(&follower));
            Ok(Led::Not(if args.no_wait { Exit::OtherLeads } else { Exit::NotWonInTime }))
        }
        Err(error) => {
            let _ = emitter.emit(client.server(), None, Event::of_failure(EventName::Error, &error));
            let mut failure = Failure::from(error);
            if args.wait.is_some() && failure.exit == Exit::Unreachable {
                failure.exit = Exit::NotWonInTime;
            }
            Err(failure)
        }
    }
}

fn other_leads(follower: &Follower) -> Event {
    let Follower { leader, retry_after_ms, .. } = follower;
    Event { leader: leader.clone(), retry_after_ms: Some(*retry_after_ms), ..Event::new(EventName::Waiting) }
}
