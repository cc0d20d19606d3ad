//! Keeps a command in step with the leadership that it runs under: it must be gone before the authority ends.

use std::ffi::OsString;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::Instant;

use super::group;
use super::launch::{Launched, launch};
use super::protocol::{Channel, Order, Report};
use super::state_file::StateFile;
use crate::cli::emitter::Emitter;
use crate::cli::event::{Event, EventName};
use crate::cli::exit::{Exit, Failure};
use crate::cli::reporter::Reporter;
use crate::cli::signals::Signals;
use crate::client::{HolderClock, Leadership, LeadershipState, LossReason, SystemHolderClock};

/// How long a group may take to vanish after KILL. The kernel needs a moment for each process, and longer for a
/// process that waits for a disk or a network file system.
const VANISH_DEADLINE: Duration = Duration::from_secs(10);

/// How long the guardian may take, after the authority has ended, to report that the group is gone. This fits into the
/// last fifth of the shortest lease.
const GUARDIAN_GRACE: Duration = Duration::from_millis(250);

/// A leadership, and the command that runs under it.
pub struct Supervisor {
    leadership: Leadership,
    reporter: Reporter,
    guardian: Child,
    /// Set once the authority is lost: when the guardian must have ended the group.
    guardian_deadline: Option<Instant>,
    channel: Channel,
    state_file: StateFile,
    /// Known once the command was started.
    group: Option<Pid>,
    /// Known once the command has ended.
    exit_code: Option<u8>,
    /// Why the command was told to end before it ended by itself: the leadership was lost, or its end was near.
    lost: Option<LossReason>,
    told_to_end: bool,
}

impl Supervisor {
    /// Starts the command.
    pub async fn start(
        command: &[OsString],
        kill_after: Duration,
        leadership: Leadership,
        emitter: Arc<Emitter>,
    ) -> Result<Supervisor, Failure> {
        let LeadershipState::Held(standing) = leadership.state().borrow().clone() else {
            let error = anyhow!("the leadership was lost before the command was started");
            return Err(Failure { exit: Exit::Lost, error });
        };
        let mut reporter = Reporter::new(emitter, &leadership);
        let Launched { guardian, channel, state_file } = match launch(command, kill_after, &leadership, &standing).await
        {
            Ok(launched) => launched,
            Err(failure) => {
                // No command runs, so nothing needs the room.
                reporter.release(leadership).await;
                return Err(failure);
            }
        };
        // If stderr is closed, the command runs all the same.
        let _ = reporter.held(&leadership, standing);
        Ok(Supervisor {
            leadership,
            reporter,
            guardian,
            guardian_deadline: None,
            channel,
            state_file,
            group: None,
            exit_code: None,
            lost: None,
            told_to_end: false,
        })
    }

    /// Supervises the command until no process of its group is left, and then gives the room up.
    pub async fn until_gone(mut self, signals: &mut Signals) -> Result<Exit, Failure> {
        let mut state = self.leadership.state();
        let ended_by_guardian = loop {
            tokio::select! {
                report = self.channel.receive::<Report>() => match report {
                    Some(Report::Gone) => break true,
                    Some(report) => self.note(report),
                    // The guardian is dead, and the kernel has killed the command with it. The rest of the group may
                    // live.
                    None => break false,
                },
                (number, ends) = signals.next() => {
                    self.channel.send(&Order::Signal(number)).await;
                    if ends && !self.told_to_end {
                        self.told_to_end = true;
                        self.channel.send(&Order::Stop).await;
                        let reason_code = Some(format!("signal_{number}"));
                        self.report(Event { reason_code, ..Event::new(EventName::Stopping) });
                    }
                }
                Ok(()) = state.changed(), if self.lost.is_none() => {
                    let now = state.borrow_and_update().clone();
                    self.follow(now).await;
                }
                () = sleep_until(self.guardian_deadline) => {
                    // The guardian doesn't run, perhaps because somebody has stopped it. Without it, this process ends
                    // the group.
                    self.guardian_deadline = None;
                    self.guardian.kill()?;
                }
            }
        };
        if !ended_by_guardian {
            self.kill_remaining_group().await?;
        }
        self.finish(ended_by_guardian).await
    }

    /// Passes a change of the leadership on to the command.
    async fn follow(&mut self, now: LeadershipState) {
        match now {
            LeadershipState::Held(standing) => {
                self.channel.send(&Order::Deadline(self.leadership.authority())).await;
                if let Err(error) = self.state_file.write(&self.leadership, &standing) {
                    tracing::debug!(%error, "the state file could not be replaced, so it is out of date");
                }
                let _ = self.reporter.held(&self.leadership, standing);
            }
            LeadershipState::Lost(reason) => {
                self.channel.send(&Order::Stop).await;
                self.lose(reason);
            }
        }
    }

    /// Records a report of the guardian.
    fn note(&mut self, report: Report) {
        match report {
            Report::Started(pid) => {
                self.group = Pid::from_raw(pid);
                let detail = format!("the command runs as process {pid}");
                self.report(Event { pid: u32::try_from(pid).ok(), detail, ..Event::new(EventName::ChildStarted) });
            }
            Report::OutOfTime => self.lose(LossReason::Uncertain),
            Report::Ended { exit_code } => {
                self.exit_code = Some(exit_code);
                let detail = format!("the command ended with {exit_code}");
                self.report(Event { exit_code: Some(exit_code), detail, ..Event::new(EventName::ChildExited) });
            }
            Report::Gone => {}
        }
    }

    /// Reports the loss. From now on the guardian has until the end of authority to end the group. A second loss is
    /// ignored, and so is a loss after the command has ended by itself.
    fn lose(&mut self, reason: LossReason) {
        if self.lost.is_some() || self.exit_code.is_some() {
            return;
        }
        let _ = self.reporter.lost(&self.leadership, &reason, "the command is ended");
        self.lost = Some(reason);
        let remaining = self.leadership.authority().remaining(SystemHolderClock.now());
        self.guardian_deadline = Some(Instant::now() + remaining + GUARDIAN_GRACE);
    }

    /// Ends the group without a guardian: the group must be gone before the room is given up.
    async fn kill_remaining_group(&self) -> Result<(), Failure> {
        let Some(group) = self.group else { return Ok(()) };
        let started = Instant::now();
        while !group::is_gone(group) {
            // This fails only if no process is left.
            let _ = kill_process_group(group, Signal::KILL);
            while group::reap().is_some() {}
            if started.elapsed() > VANISH_DEADLINE {
                let group = group.as_raw_nonzero();
                return Err(anyhow!(
                    "process group {group} doesn't end after KILL, so the room is not given up and stays taken until \
                     its lease ends; look for processes that hang in a disk or a network file system"
                )
                .into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Gives the room up. No process of the command is left.
    async fn finish(self, ended_by_guardian: bool) -> Result<Exit, Failure> {
        let Supervisor { leadership, reporter, lost, exit_code, .. } = self;
        let held = lost.is_none() && leadership.is_held();
        reporter.release(leadership).await;
        match exit_code {
            _ if !held => Ok(Exit::Lost),
            Some(code) => Ok(Exit::Child(code)),
            None if !ended_by_guardian => {
                Err(anyhow!("the guardian of the command was killed, and the command with it").into())
            }
            None => Ok(Exit::Internal),
        }
    }

    fn report(&self, event: Event) {
        // If stderr is closed, the command runs all the same.
        let _ = self.reporter.report(&self.leadership, event);
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
