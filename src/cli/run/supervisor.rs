//! Keeps a command in step with the leadership that it runs under: one deadline at a time.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::Instant;

use super::guardian;
use super::protocol::{Line, Order, Report, pass_file};
use super::state_file::{State, StateFile};
use crate::cli::events::Event;
use crate::cli::exit::{Exit, Failure};
use crate::cli::lead::{SharedEmitter, emit, end_event, release};
use crate::cli::signals::Signals;
use crate::client::{HolderClock, Leadership, LeadershipState, LossReason, Standing, SystemHolderClock};
use crate::domain::millis;

/// What the command finds in its environment.
pub const VARIABLES: [&str; 5] =
    ["QUORATE_ROOM", "QUORATE_TERM", "QUORATE_CANDIDATE", "QUORATE_EXPIRES_AT", "QUORATE_STATE_FILE"];

/// How long a group may take to vanish after KILL. The kernel needs a moment for each process, and longer for one
/// that hangs in a disk or a network file system.
const VANISH_DEADLINE: Duration = Duration::from_secs(10);

/// How long the guardian may need, after authority has ended, to say that the group is gone. It fits into the last
/// fifth of the shortest lease.
const GUARDIAN_GRACE: Duration = Duration::from_millis(250);

/// A leadership, and the command that runs under it.
pub struct Supervisor {
    leadership: Leadership,
    emitter: SharedEmitter,
    guardian: Child,
    /// Until when it must have done its work, once authority is lost.
    guardian_deadline: Option<Instant>,
    line: Line,
    state_file: StateFile,
    server: String,
    group: Option<Pid>,
    exit_code: Option<u8>,
    /// Whether authority was lost, or the group had to be ended because it would have been.
    lost: Option<LossReason>,
    told_to_end: bool,
}

impl Supervisor {
    /// Starts the command.
    pub async fn start(
        command: &[OsString],
        kill_after: Duration,
        leadership: Leadership,
        emitter: SharedEmitter,
    ) -> Result<Supervisor, Failure> {
        let LeadershipState::Held(standing) = leadership.state().borrow().clone() else {
            return Err(Failure { exit: Exit::Lost, error: anyhow!("lost before the command was started") });
        };
        let server = standing.server.clone();
        let (guardian, line, state_file) = match start_guardian(command, kill_after, &leadership, &standing).await {
            Ok(started) => started,
            Err(failure) => {
                // Nothing runs, so nothing needs the room.
                release(leadership, &emitter, &server).await;
                return Err(failure);
            }
        };
        let supervisor = Supervisor {
            leadership,
            emitter,
            guardian,
            guardian_deadline: None,
            line,
            state_file,
            server,
            group: None,
            exit_code: None,
            lost: None,
            told_to_end: false,
        };
        supervisor.tell("leader", Event { expires_at: Some(standing.expires_at), ..Event::default() });
        Ok(supervisor)
    }

    /// Keeps the command in step with the leadership until nothing of it is left.
    pub async fn until_gone(mut self, signals: &mut Signals) -> Result<Exit, Failure> {
        let mut state = self.leadership.state();
        let gone = loop {
            tokio::select! {
                report = self.line.hear::<Report>() => match report {
                    Some(Report::Gone) => break true,
                    Some(report) => self.note(report),
                    // The guardian is dead. The kernel has ended the command with it; its children are ours to end.
                    None => break false,
                },
                (number, ends) = signals.next() => {
                    self.line.say(&Order::Signal(number)).await;
                    if ends && !self.told_to_end {
                        self.told_to_end = true;
                        self.line.say(&Order::Stop).await;
                        self.tell("stopping", Event { reason_code: Some(format!("signal_{number}")), ..Event::default() });
                    }
                }
                Ok(()) = state.changed(), if self.lost.is_none() => {
                    let now = state.borrow_and_update().clone();
                    self.follow(now).await;
                }
                () = sleep_until(self.guardian_deadline) => {
                    // Stopped, perhaps by whoever stops all processes of a user. Without it, the group is ours to end.
                    self.guardian_deadline = None;
                    self.guardian.kill()?;
                }
            }
        };
        if !gone {
            self.end_what_is_left().await?;
        }
        self.finish(gone).await
    }

    /// What a change of the leadership means for the command.
    async fn follow(&mut self, now: LeadershipState) {
        match now {
            LeadershipState::Held(standing) => {
                self.line.say(&Order::Deadline(self.leadership.authority())).await;
                if let Err(error) = write_state(&self.state_file, &self.leadership, &standing) {
                    tracing::debug!(%error, "the state file is out of date");
                }
                if self.server != standing.server {
                    let (from, to) = (Some(self.server.clone()), Some(standing.server.clone()));
                    let detail = format!("{} answers instead of {}", standing.server, self.server);
                    self.server.clone_from(&standing.server);
                    self.tell("failover", Event { from, to, detail, ..Event::default() });
                }
                self.tell("renewed", Event { expires_at: Some(standing.expires_at), ..Event::default() });
            }
            LeadershipState::Lost(reason) => {
                self.line.say(&Order::Stop).await;
                self.lose(reason);
            }
        }
    }

    fn note(&mut self, report: Report) {
        match report {
            Report::Started(pid) => {
                self.group = Pid::from_raw(pid);
                let event = Event { pid: u32::try_from(pid).ok(), ..Event::default() };
                self.tell("child_started", Event { detail: format!("the command runs as process {pid}"), ..event });
            }
            Report::OutOfTime => self.lose(LossReason::Uncertain),
            Report::Ended { exit_code } => {
                self.exit_code = Some(exit_code);
                let detail = format!("the command ended with {exit_code}");
                self.tell("child_exited", Event { exit_code: Some(exit_code), detail, ..Event::default() });
            }
            Report::Gone => {}
        }
    }

    fn lose(&mut self, reason: LossReason) {
        if self.lost.is_some() || self.exit_code.is_some() {
            return;
        }
        let (name, code) = end_event(&reason);
        self.tell(
            name,
            Event { reason_code: Some(code), detail: "the command is ended".to_owned(), ..Event::default() },
        );
        self.lost = Some(reason);
        let remaining = self.leadership.authority().remaining(SystemHolderClock.now());
        self.guardian_deadline = Some(Instant::now() + remaining + GUARDIAN_GRACE);
    }

    /// Without a guardian: the group must be gone all the same before the room is given up.
    async fn end_what_is_left(&self) -> Result<(), Failure> {
        let Some(group) = self.group else { return Ok(()) };
        let started = Instant::now();
        while !guardian::is_gone(group) {
            // Fails only if nobody is left.
            let _ = kill_process_group(group, Signal::KILL);
            while guardian::reap().is_some() {}
            if started.elapsed() > VANISH_DEADLINE {
                return Err(anyhow!(
                    "process group {} doesn't end; the room is left to its lease",
                    group.as_raw_nonzero()
                )
                .into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Nothing of the command is left: the room can be given up.
    async fn finish(self, by_guardian: bool) -> Result<Exit, Failure> {
        let Supervisor { leadership, emitter, server, lost, exit_code, .. } = self;
        let held = lost.is_none() && leadership.is_held();
        release(leadership, &emitter, &server).await;
        match exit_code {
            _ if !held => Ok(Exit::Lost),
            Some(code) => Ok(Exit::Child(code)),
            None if !by_guardian => {
                Err(anyhow!("the guardian of the command was killed, and the command with it").into())
            }
            None => Ok(Exit::Internal),
        }
    }

    fn tell(&self, name: &'static str, event: Event) {
        // Stderr may be closed. The command doesn't depend on it.
        let _ = emit(&self.emitter, name, &self.server, Some(&self.leadership), event);
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Starts the guardian, which starts the command; and gives it the deadline.
async fn start_guardian(
    command: &[OsString],
    kill_after: Duration,
    leadership: &Leadership,
    standing: &Standing,
) -> Result<(Child, Line, StateFile), Failure> {
    let state_file = StateFile::create().context("the state file can't be made")?;
    write_state(&state_file, leadership, standing).context("the state file can't be written")?;
    let (here, there) = UnixStream::pair()?;
    pass_file(&here, std::io::stdin().as_fd())?;
    let child = Command::new("/proc/self/exe")
        .args(["guardian", "--kill-after-ms", &kill_after.as_millis().to_string(), "--"])
        .args(command)
        .env("QUORATE_ROOM", leadership.room().as_str())
        .env("QUORATE_TERM", leadership.term().to_string())
        .env("QUORATE_CANDIDATE", leadership.candidate().as_str())
        .env("QUORATE_EXPIRES_AT", &standing.expires_at)
        .env("QUORATE_STATE_FILE", state_file.path())
        .stdin(Stdio::from(OwnedFd::from(there)))
        // What a terminal sends to its foreground group reaches the command through us.
        .process_group(0)
        .spawn();
    // It is waited for by its messages; what is left of it goes with this process.
    let guardian = child.context("the guardian can't be started")?;
    let mut line = Line::new(here)?;
    line.say(&Order::Deadline(leadership.authority())).await;
    Ok((guardian, line, state_file))
}

fn write_state(file: &StateFile, leadership: &Leadership, standing: &Standing) -> std::io::Result<()> {
    let now = SystemHolderClock.now();
    let ends = now.boot + leadership.authority().remaining(now);
    file.write(&State {
        schema_version: 1,
        election_id: leadership.room().as_str(),
        candidate_id: leadership.candidate().as_str(),
        term: leadership.term().0,
        expires_at: &standing.expires_at,
        authority_ends_continuous_ms: millis(ends),
        renewals: standing.renewals,
    })
}
