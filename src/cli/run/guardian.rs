//! The process between `quorate run` and its command, which sees to it that the command's whole group ends in time.
//!
//! It outlives `quorate run`: when that is killed, stopped or out of memory, the pipe between the two breaks or the
//! deadline comes, and the group is ended all the same. And the kernel ends the command when the guardian is killed
//! (`PR_SET_PDEATHSIG`; it counts for the thread that started the command, and the guardian has only one).
//!
//! ```text
//! quorate run ──pair of sockets──► guardian ──starts──► quorate exec ──becomes──► the command, in its own group
//! ```

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, test_kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use super::protocol::{Line, Order, Report, take_file};
use crate::cli::exit::{Exit, Failure};
use crate::client::{Deadline, HolderClock, SystemHolderClock};

/// How often the deadline, and what is left of the group, are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Arguments of the hidden `quorate guardian`.
#[derive(Debug, clap::Args)]
pub struct GuardianArgs {
    /// How long the group has between TERM and KILL, in milliseconds
    #[arg(long)]
    kill_after_ms: u64,

    /// The command
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Arguments of the hidden `quorate exec`.
#[derive(Debug, clap::Args)]
pub struct ExecArgs {
    /// Who has to live as long
    #[arg(long)]
    parent: i32,

    /// The command
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Starts the command, and doesn't return before its whole group is gone.
pub fn guard(args: &GuardianArgs) -> Result<Exit, Failure> {
    let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let stdin = take_file(&socket)?;
    // What the command leaves behind is ours to bury, so that the group can be seen to be gone.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // One thread, for the parent-death signal.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before the command: its end must not be missed. The others are for the command, by way of `quorate run`.
        let mut child_ended = signal(SignalKind::child())?;
        let mut ignored = Vec::new();
        for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()] {
            ignored.push(signal(kind)?);
        }
        let parent = rustix::process::getpid().as_raw_nonzero().to_string();
        let child = Command::new("/proc/self/exe")
            .args(["exec", "--parent", &parent, "--"])
            .args(&args.command)
            .stdin(Stdio::from(stdin))
            .process_group(0)
            .spawn()?;
        let group = Pid::from_child(&child);
        let mut line = Line::new(socket)?;
        line.say(&Report::Started(group.as_raw_nonzero().get())).await;
        let mut group = Group {
            id: group,
            kill_after: Duration::from_millis(args.kill_after_ms),
            deadline: None,
            kill_at: None,
            command_ended: false,
        };
        let mut connected = true;
        loop {
            tokio::select! {
                order = line.hear::<Order>(), if connected => match order {
                    Some(order) => group.obey(&order),
                    None => {
                        connected = false;
                        group.kill_now();
                    }
                },
                _ = child_ended.recv() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            while let Some((pid, status)) = reap() {
                if pid == group.id {
                    group.command_ended = true;
                    line.say(&Report::Ended { exit_code: exit_code(status) }).await;
                    // What it started has no reason to go on.
                    group.stop();
                }
            }
            if group.keep_time() {
                line.say(&Report::OutOfTime).await;
            }
            if group.command_ended && group.is_gone() {
                line.say(&Report::Gone).await;
                return Ok(Exit::Success);
            }
        }
    })
}

/// The command and what it has started.
struct Group {
    /// The process id of the command as well.
    id: Pid,
    kill_after: Duration,
    /// When it must be gone.
    deadline: Option<Deadline>,
    /// When its grace is over, once it has been told to end.
    kill_at: Option<Deadline>,
    command_ended: bool,
}

impl Group {
    fn obey(&mut self, order: &Order) {
        match order {
            // A renewal that comes too late doesn't bring back what was told to end.
            Order::Deadline(deadline) if self.kill_at.is_none() => self.deadline = Some(*deadline),
            Order::Deadline(_) => {}
            Order::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(*number) {
                    self.signal(signal);
                }
            }
            Order::Stop => self.stop(),
        }
    }

    /// Tells it to end, and starts the clock. A stopped group must run to hear it.
    fn stop(&mut self) {
        if self.kill_at.is_none() {
            self.kill_at = Some(Deadline::new(SystemHolderClock.now(), self.kill_after));
            self.signal(Signal::TERM);
            self.signal(Signal::CONT);
        }
    }

    fn kill_now(&mut self) {
        self.kill_at = Some(Deadline::new(SystemHolderClock.now(), Duration::ZERO));
        self.signal(Signal::KILL);
    }

    /// Does what the time asks for. Whether it had to tell the group to end.
    fn keep_time(&mut self) -> bool {
        let now = SystemHolderClock.now();
        let remaining = self.deadline.map(|deadline| deadline.remaining(now));
        if remaining.is_some_and(|remaining| remaining.is_zero())
            || self.kill_at.is_some_and(|kill_at| kill_at.is_over(now))
        {
            // Again and again, until all are gone.
            self.signal(Signal::KILL);
        }
        let out_of_time = remaining.is_some_and(|remaining| remaining <= self.kill_after) && self.kill_at.is_none();
        if out_of_time {
            self.stop();
        }
        out_of_time
    }

    fn signal(&self, signal: Signal) {
        // It can only fail because nobody is left.
        let _ = kill_process_group(self.id, signal);
    }

    fn is_gone(&self) -> bool {
        is_gone(self.id)
    }
}

/// Whether nothing of a group is left.
pub fn is_gone(group: Pid) -> bool {
    test_kill_process_group(group) == Err(rustix::io::Errno::SRCH)
}

/// Buries a child, or what a child has left behind.
pub fn reap() -> Option<(Pid, WaitStatus)> {
    rustix::process::wait(WaitOptions::NOHANG).ok().flatten()
}

fn exit_code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(255);
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Becomes the command. Returns only if there is none.
pub fn exec(args: &ExecArgs) -> Result<Exit, Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Had the guardian died before the line above, nobody would send the signal.
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(args.parent) {
        return Ok(Exit::Internal);
    }
    let [program, arguments @ ..] = args.command.as_slice() else { return Ok(Exit::Usage) };
    let error = Command::new(program).args(arguments).exec();
    let _ = writeln!(std::io::stderr(), "quorate: {} can't be run: {error}", program.to_string_lossy());
    Ok(Exit::Child(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }))
}
