//! Leads, and runs the command under each leadership.

use std::sync::Arc;

use tokio::runtime::Runtime;

use super::args::{Restart, RunArgs};
use super::supervisor::Supervisor;
use crate::cli::emitter::Emitter;
use crate::cli::exit::{Exit, Failure};
use crate::cli::lead::{Led, Target, lead};
use crate::cli::signals::Signals;

/// Leads, runs the command, and gives the room up.
pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    Runtime::new()?.block_on(run_while_leading(args))
}

async fn run_while_leading(args: &RunArgs) -> Result<Exit, Failure> {
    let kill_after = args.kill_after()?;
    let mut signals = Signals::listen()?;
    let target = Target::new(&args.connect, &args.room)?;
    let emitter = Arc::new(Emitter::on_stderr(args.output, &args.room, &args.lead.candidate.candidate));
    // If the guardian is killed, the processes of the command become children of this one. So this process can see
    // whether they have ended.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    loop {
        let leadership = match lead(&target, &args.lead, &emitter, &mut signals).await? {
            Led::Won(leadership) => leadership,
            Led::Not(exit) => return Ok(exit),
        };
        let supervisor = Supervisor::start(&args.command, kill_after, leadership, emitter.clone()).await?;
        let exit = supervisor.until_gone(&mut signals).await?;
        if exit != Exit::Lost || args.restart == Restart::Never {
            return Ok(exit);
        }
    }
}
