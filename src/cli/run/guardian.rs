//! The process between `quorate run` and its command: it ends the command's whole process group in time.
//!
//! The guardian outlives `quorate run`. If that process is killed, the sockets between the two are closed, and the
//! guardian ends the group. If `quorate run` is stopped, the deadline passes, and the guardian ends the group too. If
//! the guardian itself is killed, the kernel kills the command (`PR_SET_PDEATHSIG`). That signal is tied to the thread
//! that started the command, so the guardian has only one thread.
//!
//! ```text
//! quorate run ──pair of sockets──► guardian ──starts──► quorate exec ──becomes──► the command, in its own group
//! ```

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, WaitStatus};
use tokio::signal::unix::{SignalKind, signal};

use super::group::{Group, is_gone, reap};
use super::protocol::{Channel, Order, Report, take_file};
use crate::cli::exit::{Exit, Failure};

/// How often the guardian checks the deadline and the group.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// Arguments of the hidden `quorate guardian`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
This is an internal part of `quorate run`. It expects one end of a pair of sockets as its stdin.

Example, as `quorate run` does it:
  quorate guardian --kill-after-ms 5000 -- ./report")]
pub struct GuardianArgs {
    /// Milliseconds between TERM and KILL for the process group of the command
    #[arg(long, value_name = "MS")]
    kill_after_ms: u64,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Starts the command, and returns when its whole group is gone.
pub fn guard(args: &GuardianArgs) -> Result<Exit, Failure> {
    let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let stdin = take_file(&socket)?;
    // Orphans of the command become children of this process. So it can see whether they have ended.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // The parent-death signal needs a process with one thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(guard_command(args, socket, stdin))
}

async fn guard_command(args: &GuardianArgs, socket: UnixStream, stdin: OwnedFd) -> Result<Exit, Failure> {
    // The guardian listens before it starts the command, so that it can't miss the command's end.
    let mut child_ended = signal(SignalKind::child())?;
    // It ignores the signals that `quorate run` passes on to the command.
    let mut ignored = Vec::new();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()] {
        ignored.push(signal(kind)?);
    }
    let group = start_command(&args.command, stdin)?;
    let mut channel = Channel::new(socket)?;
    channel.send(&Report::Started(group.as_raw_nonzero().get())).await;
    let mut group = Group::new(group, Duration::from_millis(args.kill_after_ms));
    let mut command_ended = false;
    let mut connected = true;
    loop {
        tokio::select! {
            order = channel.receive::<Order>(), if connected => match order {
                Some(order) => group.obey(&order),
                None => {
                    connected = false;
                    group.kill_now();
                }
            },
            _ = child_ended.recv() => {}
            () = tokio::time::sleep(CHECK_EVERY) => {}
        }
        while let Some((pid, status)) = reap() {
            if pid == group.id {
                command_ended = true;
                channel.send(&Report::Ended { exit_code: exit_code(status) }).await;
                // The processes that the command has started have no reason to go on.
                group.stop();
            }
        }
        if group.keep_time() {
            channel.send(&Report::OutOfTime).await;
        }
        if command_ended && is_gone(group.id) {
            channel.send(&Report::Gone).await;
            return Ok(Exit::Success);
        }
    }
}

/// Starts the command by way of `quorate exec`, in a process group of its own, whose id is returned.
fn start_command(command: &[OsString], stdin: OwnedFd) -> std::io::Result<Pid> {
    let parent = rustix::process::getpid().as_raw_nonzero().to_string();
    let child = Command::new("/proc/self/exe")
        .args(["exec", "--parent", &parent, "--"])
        .args(command)
        .stdin(Stdio::from(stdin))
        .process_group(0)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

fn exit_code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(255);
    u8::try_from(code).unwrap_or(u8::MAX)
}
