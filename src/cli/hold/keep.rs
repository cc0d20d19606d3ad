//! Leads for as long as possible, and reports each event.

use std::sync::Arc;

use tokio::runtime::Runtime;

use super::args::HoldArgs;
use super::sidecar::Sidecar;
use crate::cli::emitter::Emitter;
use crate::cli::exit::{Exit, Failure};
use crate::cli::lead::{Led, Target, lead};
use crate::cli::output::Output;
use crate::cli::reporter::Reporter;
use crate::cli::signals::Signals;
use crate::client::{Leadership, LeadershipState};

/// Leads until the leadership is lost, or until a signal.
pub fn run(args: &HoldArgs) -> Result<Exit, Failure> {
    Runtime::new()?.block_on(hold(args))
}

async fn hold(args: &HoldArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let target = Target::new(&args.connect, &args.room)?;
    let output = Output::for_events(args.output);
    let candidate = &args.lead.candidate.candidate;
    let emitter = Arc::new(Emitter::on_stdout(output, &args.room, candidate));
    let sidecar = Sidecar::new(&args.room, candidate);
    if let Some(listen) = args.listen {
        sidecar.serve(listen, target.election.clone()).await.map_err(|error| {
            let context = format!("--listen {listen} can't be used; choose another port");
            Failure::usage(anyhow::Error::from(error).context(context))
        })?;
    }
    let leadership = match lead(&target, &args.lead, &emitter, &mut signals).await? {
        Led::Won(leadership) => leadership,
        Led::Not(exit) => return Ok(exit),
    };
    sidecar.leads(leadership.observer());
    Ok(keep(leadership, emitter, &mut signals).await)
}

/// Reports events until the leadership ends.
async fn keep(leadership: Leadership, emitter: Arc<Emitter>, signals: &mut Signals) -> Exit {
    let mut state = leadership.state();
    let mut reporter = Reporter::new(emitter, &leadership);
    let exit = loop {
        let now = state.borrow_and_update().clone();
        let reported = match now {
            LeadershipState::Held(standing) => reporter.held(&leadership, standing),
            LeadershipState::Lost(reason) => {
                // If nobody reads the event, the exit code still says it.
                let _ = reporter.lost(&leadership, &reason, "");
                return Exit::Lost;
            }
        };
        if reported.is_err() {
            // The program that read the events is gone. So nothing acts for this holder any more.
            break Exit::Success;
        }
        tokio::select! {
            biased;
            number = signals.end() => break Exit::Signal(number),
            // This can't fail, because the sender lives as long as the leadership.
            _ = state.changed() => {}
        }
    };
    reporter.release(leadership).await;
    exit
}
