//! Leads for as long as possible, and tells each event.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::args::HoldArgs;
use super::sidecar::Sidecar;
use crate::cli::events::{Emitter, Event};
use crate::cli::exit::{Exit, Failure};
use crate::cli::lead::{Led, SharedEmitter, election, emit, end_event, lead, release};
use crate::cli::output::Output;
use crate::cli::signals::Signals;
use crate::client::{Leadership, LeadershipState};

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
