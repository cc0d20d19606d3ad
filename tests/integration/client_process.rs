//! Runs the built program as a client: starts it, reads its output, signals it, and always ends it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorate::client::{HolderClock, SystemHolderClock};
use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};
use serde_json::Value;

use crate::harness::{PATIENCE, eventually};

/// A client process that runs, or has run.
pub struct Tool {
    child: Child,
    stdout: Lines,
    stderr: Lines,
    readers: Vec<std::thread::JoinHandle<()>>,
    status: Option<ExitStatus>,
}

/// The lines that were printed, each with the time on `CLOCK_BOOTTIME` at which it was read.
type Lines = Arc<Mutex<Vec<(Duration, String)>>>;

pub fn command(urls: &[String], args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("QUORATE_URL", urls.join(","));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Tool {
    pub fn start(urls: &[String], args: &[&str]) -> Tool {
        Tool::spawn(command(urls, args))
    }

    pub fn spawn(mut command: Command) -> Tool {
        let mut child = command.spawn().unwrap();
        let (stdout, stderr) = (Arc::default(), Arc::default());
        let readers =
            vec![collect(child.stdout.take().unwrap(), &stdout), collect(child.stderr.take().unwrap(), &stderr)];
        Tool { child, stdout, stderr, readers, status: None }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn stdout(&self) -> String {
        joined(&self.stdout)
    }

    pub fn stderr(&self) -> String {
        joined(&self.stderr)
    }

    /// The lines of stdout, and when each was read.
    pub fn heard(&self) -> Vec<(Duration, String)> {
        self.stdout.lock().unwrap().clone()
    }

    /// The event records of both streams: `hold` prints them to stdout, `run` to stderr.
    pub fn events(&self) -> Vec<Value> {
        let lines = [self.stdout.lock().unwrap().clone(), self.stderr.lock().unwrap().clone()].concat();
        lines.iter().filter_map(|(_, line)| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
    }

    /// The names of the events in their order. If a name repeats in a row, it is listed once.
    pub fn story(&self) -> Vec<String> {
        let mut names: Vec<_> =
            self.events().iter().map(|event| event["event"].as_str().unwrap_or_default().to_owned()).collect();
        names.dedup();
        names
    }

    pub fn seen(&self, event: &str) -> Option<Value> {
        self.events().into_iter().find(|seen| seen["event"] == event)
    }

    pub async fn event(&self, event: &str) -> Value {
        eventually(event, || async { self.seen(event) }).await
    }

    /// The process group of the command that `run` started.
    pub async fn group(&self) -> Pid {
        let pid = self.event("child_started").await["pid"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    /// When its authority ends on `CLOCK_BOOTTIME`, by the last event that grants authority.
    pub fn authority_ends(&self) -> Duration {
        let end_of = |event: &Value| {
            let observed = event["authority_observed_continuous_ms"].as_u64()?;
            let granted = ["leader", "renewed"].iter().any(|name| event["event"] == *name);
            granted.then_some(Duration::from_millis(observed + event["authority_remaining_ms"].as_u64()?))
        };
        self.events().iter().rev().find_map(end_of).expect("it has led")
    }

    /// Waits until the process ends, and its output has been read.
    pub async fn exit_code(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        while self.status.is_none() {
            self.status = self.child.try_wait().unwrap();
            assert!(Instant::now() < deadline, "it does not end:\n{}\n{}", self.stdout(), self.stderr());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // A command that outlives the process keeps the pipes open. So the wait for the rest of the output is short.
        let drained = Instant::now() + Duration::from_secs(2);
        while Instant::now() < drained && self.readers.iter().any(|reader| !reader.is_finished()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.status.unwrap().code().unwrap_or(-1)
    }

    pub fn is_running(&mut self) -> bool {
        self.status = self.status.or(self.child.try_wait().unwrap());
        self.status.is_none()
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        if self.is_running() {
            let _ = kill_process(self.pid(), Signal::CONT);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- stdout ---\n{}\n--- stderr ---\n{}", self.stdout(), self.stderr());
        }
    }
}

fn joined(lines: &Lines) -> String {
    lines.lock().unwrap().iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
}

fn collect(stream: impl Read + Send + 'static, lines: &Lines) -> std::thread::JoinHandle<()> {
    let lines = lines.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            lines.lock().unwrap().push((boot_time(), line));
        }
    })
}

pub fn boot_time() -> Duration {
    SystemHolderClock.now().boot
}

pub fn group_is_gone(group: Pid) -> bool {
    test_kill_process_group(group) == Err(rustix::io::Errno::SRCH)
}

/// Waits until the process group is gone, and returns the time on `CLOCK_BOOTTIME`.
pub async fn gone_at(group: Pid) -> Duration {
    let deadline = Instant::now() + PATIENCE;
    while !group_is_gone(group) {
        assert!(Instant::now() < deadline, "group {group:?} does not end");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    boot_time()
}
