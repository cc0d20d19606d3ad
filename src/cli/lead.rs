//! What `quorate hold` and `quorate run` have in common: the way to a leadership, and signals on it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::candidate::own_name;
use super::connect::{ConnectArgs, advise};
use super::events::{Emitter, Event};
use super::exit::{Exit, Failure, exit_for};
use super::signals::Signals;
use super::values::{parse_duration, parse_ttl};
use crate::client::{Attempt, Client, ClientError, Election, Leadership, LossReason, Waiting};

/// How long a resignation may take at the end. Without an answer the room is free when the lease has ended.
const RELEASE_DEADLINE: Duration = Duration::from_secs(2);

/// Who wants to lead, and how long to wait for it.
#[derive(Debug, clap::Args)]
pub struct LeadArgs {
    /// Name to campaign under [default: host:pid:random]
    #[arg(long, env = "QUORATE_CANDIDATE", value_name = "NAME", default_value_t = own_name(), hide_default_value = true)]
    pub candidate: String,

    /// How long the lease lasts without a renewal, from 5s to 300s; authority is 80 % of it
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, default_value = "30s")]
    pub ttl: Duration,

    /// What everybody shall see beside the name
    #[arg(long, value_name = "TEXT")]
    pub metadata: Option<String>,

    /// Give up with exit code 11 when the room isn't won within this [default: wait for ever]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub wait: Option<Duration>,

    /// End with exit code 10 at once when somebody else leads
    #[arg(long, conflicts_with = "wait")]
    pub no_wait: bool,
}

/// An emitter that a campaign can tell things to.
pub type SharedEmitter = Arc<Mutex<Emitter>>;

/// How a campaign ended.
pub enum Led {
    /// With a leadership.
    Won(Leadership),
    /// With an exit code.
    Not(Exit),
}

/// The election of `room` at these nodes.
pub fn election(connect: &ConnectArgs, room: &str) -> Result<(Client, Election), Failure> {
    let client = connect.client()?;
    let election = client.election(room)?;
    Ok((client, election))
}

/// Campaigns as `args` say, and tells what happens. A signal ends it.
pub async fn lead(
    (client, election): &(Client, Election),
    args: &LeadArgs,
    emitter: &SharedEmitter,
    signals: &mut Signals,
) -> Result<Led, Failure> {
    let mut campaign = election.campaign(&args.candidate).map_err(advise)?.ttl(args.ttl)?;
    if let Some(metadata) = &args.metadata {
        campaign = campaign.metadata(metadata)?;
    }
    let (told, teller) = (emitter.clone(), client.clone());
    let campaign = campaign.on_waiting(move |waiting| {
        let (name, event) = waiting_event(waiting);
        // If nobody reads, the first event of the leadership finds out.
        let _ = emit(&told, name, teller.server(), None, event);
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
        kind = signals.end() => return Ok(Led::Not(Exit::Signal(kind))),
        attempt = attempt => attempt,
    };
    match attempt {
        Ok(Attempt::Won(leadership)) => Ok(Led::Won(leadership)),
        Ok(Attempt::Follower(lost)) => {
            let (name, event) = waiting_event(Waiting::OtherLeads(&lost));
            let _ = emit(emitter, name, client.server(), None, event);
            Ok(Led::Not(if args.no_wait { Exit::OtherLeads } else { Exit::WaitedInVain }))
        }
        Err(error) => {
            let in_vain = args.wait.is_some() && exit_for(&error) == Exit::Unreachable;
            let exit = if in_vain { Exit::WaitedInVain } else { exit_for(&error) };
            let _ = emit(emitter, "error", client.server(), None, trouble(&error));
            Err(Failure { exit, error: error.into() })
        }
    }
}

/// Tells an event.
pub fn emit(
    emitter: &SharedEmitter,
    name: &'static str,
    server: &str,
    leadership: Option<&Leadership>,
    event: Event,
) -> std::io::Result<()> {
    let term = leadership.map(|leadership| leadership.term().0);
    let authority = leadership.map(Leadership::authority);
    let mut emitter = emitter.lock();
    emitter.emit(name, server, authority, Event { term, ..event })
}

fn waiting_event(waiting: Waiting<'_>) -> (&'static str, Event) {
    match waiting {
        Waiting::OtherLeads(lost) => {
            let leader = lost.leader.clone();
            ("waiting", Event { leader, retry_after_ms: Some(lost.retry_after_ms), ..Event::default() })
        }
        Waiting::Trouble(error) => ("waiting", trouble(error)),
    }
}

fn trouble(error: &ClientError) -> Event {
    let ours = match error {
        ClientError::OutcomeUnknown(_) => "outcome_unknown",
        ClientError::Invalid(_) => "invalid_input",
        _ => "unavailable",
    };
    let reason = error.code().unwrap_or(ours).to_owned();
    Event { reason_code: Some(reason), detail: error.to_string(), ..Event::default() }
}

/// The event that ends a leadership, and its code.
pub fn end_event(reason: &LossReason) -> (&'static str, String) {
    match reason {
        LossReason::NotCurrent => ("lost", "lease_not_current".to_owned()),
        LossReason::Rejected { code } => ("lost", code.clone()),
        LossReason::Uncertain => ("uncertain", "authority_deadline".to_owned()),
        LossReason::Resigned => ("released", "resigned".to_owned()),
    }
}

/// Resigns, and tells it if it worked. What was lost can't be given up.
pub async fn release(leadership: Leadership, emitter: &SharedEmitter, server: &str) {
    if !leadership.is_held() {
        return;
    }
    let term = leadership.term().0;
    let resigned = tokio::time::timeout(RELEASE_DEADLINE, leadership.resign()).await;
    let (name, code, detail) = match &resigned {
        Ok(Ok(())) => ("released", None, "resigned".to_owned()),
        Ok(Err(error)) => ("error", Some(error.code().unwrap_or("not_released")), format!("not resigned: {error}")),
        Err(_) => ("error", Some("not_released"), "not resigned: no node answered in time".to_owned()),
    };
    let event = Event { term: Some(term), reason_code: code.map(str::to_owned), detail, ..Event::default() };
    let _ = emit_end(emitter, name, server, event);
}

fn emit_end(emitter: &SharedEmitter, name: &'static str, server: &str, event: Event) -> std::io::Result<()> {
    let mut emitter = emitter.lock();
    emitter.emit(name, server, None, event)
}
