//! Starts the guardian, which starts the command.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::protocol::{Channel, Order, pass_file};
use super::state_file::StateFile;
use crate::cli::exit::Failure;
use crate::client::{Leadership, Standing};

/// Variables in the environment of the command.
pub const VARIABLES: [&str; 5] =
    ["QUORATE_ROOM", "QUORATE_TERM", "QUORATE_CANDIDATE", "QUORATE_EXPIRES_AT", "QUORATE_STATE_FILE"];

/// The parts that a running command needs.
pub struct Launched {
    /// The process that starts and ends the command.
    pub guardian: Child,
    /// The connection to the guardian.
    pub channel: Channel,
    /// The file that tells the command how long it may act.
    pub state_file: StateFile,
}

/// Starts the guardian of a command, and tells it the deadline.
pub async fn launch(
    command: &[OsString],
    kill_after: Duration,
    leadership: &Leadership,
    standing: &Standing,
) -> Result<Launched, Failure> {
    let state_file = StateFile::create().context("the state file can't be created; check XDG_RUNTIME_DIR")?;
    state_file.write(leadership, standing).context("the state file can't be written")?;
    let (here, there) = UnixStream::pair()?;
    pass_file(&here, std::io::stdin().as_fd())?;
    let term = leadership.term().to_string();
    let state_path = state_file.path();
    let values =
        [leadership.room().as_str(), &term, leadership.candidate().as_str(), &standing.expires_at].map(OsStr::new);
    let guardian = Command::new("/proc/self/exe")
        .args(["guardian", "--kill-after-ms", &kill_after.as_millis().to_string(), "--"])
        .args(command)
        .envs(VARIABLES.into_iter().zip(values.into_iter().chain([state_path.as_os_str()])))
        .stdin(Stdio::from(OwnedFd::from(there)))
        // A group of its own, so that signals from the terminal reach the guardian only through this process.
        .process_group(0)
        .spawn()
        .context("the guardian can't be started")?;
    // No code waits for this child, because its last message says that it has ended. It stays a zombie until this
    // process ends.
    let mut channel = Channel::new(here)?;
    channel.send(&Order::Deadline(leadership.authority())).await;
    Ok(Launched { guardian, channel, state_file })
}
