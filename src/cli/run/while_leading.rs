//! Leads, and runs the command under each leadership.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::args::{Restart, RunArgs};
use super::supervisor::Supervisor;
use crate::cli::events::Emitter;
use crate::cli::exit::{Exit, Failure};
use crate::cli::lead::{Led, election, lead};
use crate::cli::signals::Signals;

/// Leads, runs the command, and gives up.
pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    // On this thread, which lives as long as the process.
    Runtime::new()?.block_on(run_while_leading(args))
}

async fn run_while_leading(args: &RunArgs) -> Result<Exit, Failure> {
    let kill_after = args.kill_after()?;
    let mut signals = Signals::listen()?;
    let target = election(&args.connect, &args.room)?;
    let emitter = Arc::new(Mutex::new(Emitter::on_stderr(args.output, &args.room, &args.lead.candidate)));
    // If the guardian is killed, its orphans come to us, so that the group can be seen to be gone.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    loop {
        let leadership = match lead(&target, &args.lead, &emitter, &mut signals).await? {
            Led::Won(leadership) => leadership,
            Led::Not(exit) => return Ok(exit),
        };
        let supervisor = Supervisor::start(&args.command, kill_after, leadership, emitter.clone());
        let exit = supervisor.await?.until_gone(&mut signals).await?;
        if exit != Exit::Lost || args.restart == Restart::Never {
            return Ok(exit);
        }
    }
}
