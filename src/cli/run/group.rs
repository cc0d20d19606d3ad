//! The process group of the command: the command itself, and all processes that it has started and that stayed in it.

use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, test_kill_process_group};

use super::protocol::Order;
use crate::client::{Deadline, HolderClock, SystemHolderClock};

/// A group, and when it must end.
pub struct Group {
    /// This is also the process id of the command.
    pub id: Pid,
    kill_after: Duration,
    /// When the group must be gone.
    deadline: Option<Deadline>,
    /// Set once the group was told to end: when it gets KILL.
    kill_at: Option<Deadline>,
}

impl Group {
    /// The group of a command that was started just now. It has no deadline yet.
    pub fn new(id: Pid, kill_after: Duration) -> Group {
        Group { id, kill_after, deadline: None, kill_at: None }
    }

    /// Carries out an order of `quorate run`.
    pub fn obey(&mut self, order: &Order) {
        match order {
            // A late renewal doesn't save a group that was told to end.
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

    /// Tells the group to end, and starts the time until KILL. CONT wakes processes that are stopped, because only a
    /// running process can handle TERM.
    pub fn stop(&mut self) {
        if self.kill_at.is_none() {
            self.kill_at = Some(Deadline::new(SystemHolderClock.now(), self.kill_after));
            self.signal(Signal::TERM);
            self.signal(Signal::CONT);
        }
    }

    /// Kills the group without waiting.
    pub fn kill_now(&mut self) {
        self.kill_at = Some(Deadline::new(SystemHolderClock.now(), Duration::ZERO));
        self.signal(Signal::KILL);
    }

    /// Ends the group in time. Returns true once, when it tells the group to end because the deadline is near.
    pub fn keep_time(&mut self) -> bool {
        let now = SystemHolderClock.now();
        let remaining = self.deadline.map(|deadline| deadline.remaining(now));
        if remaining.is_some_and(|remaining| remaining.is_zero())
            || self.kill_at.is_some_and(|kill_at| kill_at.is_over(now))
        {
            // This is repeated at each call until all are gone, because a process may have started another meanwhile.
            self.signal(Signal::KILL);
        }
        let out_of_time = remaining.is_some_and(|remaining| remaining <= self.kill_after) && self.kill_at.is_none();
        if out_of_time {
            self.stop();
        }
        out_of_time
    }

    fn signal(&self, signal: Signal) {
        // This fails only if no process is left.
        let _ = kill_process_group(self.id, signal);
    }
}

/// Whether no process of the group is left.
pub fn is_gone(group: Pid) -> bool {
    test_kill_process_group(group) == Err(rustix::io::Errno::SRCH)
}

/// Takes the exit status of one process that has ended: a child, or an orphan of a child.
pub fn reap() -> Option<(Pid, WaitStatus)> {
    rustix::process::wait(WaitOptions::NOHANG).ok().flatten()
}
