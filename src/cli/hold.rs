//! `quorate hold`: lead for as long as possible, and say so to whoever reads stdout or asks the sidecar.

mod sidecar;

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::connect::ConnectArgs;
use super::events::{Emitter, Event};
use super::exit::{Exit, Failure};
use super::lead::{LeadArgs, Led, SharedEmitter, election, emit, end_event, lead, release};
use super::output::Output;
use super::signals::Signals;
use crate::client::{Leadership, LeadershipState};
use sidecar::Sidecar;

const EXAMPLES: &str = "\
Prints a line of JSON for each event: waiting, leader, renewed, failover, released, lost, uncertain, error. Once lost, \
a leadership is never taken again: exit code 20. SIGTERM and SIGINT resign: 143 and 130.

Whoever acts on the events must stop authority_remaining_ms after them, whether another one comes or not. The sidecar \
of --listen is computed from the deadline at each request: / is the leader's name, /is-leader answers 200 or 409, \
/status both as JSON.

Example:
  quorate hold nightly-report --candidate worker-a --listen 127.0.0.1:4040 &
  curl -fs http://127.0.0.1:4040/is-leader && ./report";

/// Arguments of `quorate hold`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct HoldArgs {
    /// The room
    room: String,

    #[command(flatten)]
    lead: LeadArgs,

    /// Serve who leads, over HTTP, to programs on this machine
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<SocketAddr>,

    #[command(flatten)]
    connect: ConnectArgs,

    /// How to print the events [default: text on a terminal, json elsewhere]
    #[arg(long, value_enum, value_name = "FORMAT")]
    output: Option<Output>,
}

/// Leads until it is lost, or until a signal.
pub fn run(args: &HoldArgs) -> Result<Exit, Failure> {
    Runtime::new()?.block_on(hold(args))
}

async fn hold(args: &HoldArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let target = election(&args.connect, &args.room)?;
    let output = Output::or_as_fits_stdout(args.output);
    let emitter = Arc::new(Mutex::new(Emitter::on_stdout(output, &args.room, &args.lead.candidate)));
    let sidecar = Sidecar::new(&args.room, &args.lead.candidate);
    if let Some(listen) = args.listen {
        sidecar.serve(listen, target.1.clone()).await.map_err(|error| {
            Failure::usage(anyhow::Error::from(error).context(format!("--listen {listen} can't be used")))
        })?;
    }
    let leadership = match lead(&target, &args.lead, &emitter, &mut signals).await? {
        Led::Won(leadership) => leadership,
        Led::Not(exit) => return Ok(exit),
    };
    sidecar.leads(leadership.observer());
    keep(leadership, &emitter, &mut signals).await
}

async fn keep(leadership: Leadership, emitter: &SharedEmitter, signals: &mut Signals) -> Result<Exit, Failure> {
    let mut state = leadership.state();
    let mut server = String::new();
    let mut told = None;
    let exit = loop {
        let now = state.borrow_and_update().clone();
        let standing = match now {
            LeadershipState::Held(standing) => standing,
            LeadershipState::Lost(reason) => {
                let (name, code) = end_event(&reason);
                let event = Event { reason_code: Some(code), ..Event::default() };
                // If nobody reads, the exit code has to do.
                let _ = emit(emitter, name, &server, Some(&leadership), event);
                return Ok(Exit::Lost);
            }
        };
        let name = if told.is_none() { "leader" } else { "renewed" };
        let mut result = Ok(());
        if told.is_some() && server != standing.server {
            let (from, to) = (Some(server.clone()), Some(standing.server.clone()));
            let detail = format!("{} answers instead of {server}", standing.server);
            let event = Event { from, to, detail, ..Event::default() };
            result = emit(emitter, "failover", &standing.server, Some(&leadership), event);
        }
        server.clone_from(&standing.server);
        if told != Some(standing.renewals) {
            told = Some(standing.renewals);
            let event = Event { expires_at: Some(standing.expires_at), ..Event::default() };
            result = result.and(emit(emitter, name, &server, Some(&leadership), event));
        }
        if result.is_err() {
            // The reader has gone, and with it whoever acted for this leader.
            break Exit::Success;
        }
        tokio::select! {
            biased;
            number = signals.end() => break Exit::Signal(number),
            // The sender lives as long as the leadership.
            _ = state.changed() => {}
        }
    };
    release(leadership, emitter, &server).await;
    Ok(exit)
}
