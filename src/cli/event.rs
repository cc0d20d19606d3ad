//! The events that `quorate hold` and `quorate run` report, and the shape of their JSON.
//!
//! Names and fields are those of OctoStore's command line, so that a supervisor written for it can read ours. New
//! are the events `failover`, `stopping`, `child_started` and `child_exited`, and the fields of [`Event`] from `from`
//! on. A reader must ignore what it doesn't know. No event contains a token.

use serde::{Serialize, Serializer};

use crate::client::{ClientError, LossReason};
use crate::wire::Leader;

/// The version of the shape of [`EventRecord`].
pub const SCHEMA_VERSION: u8 = 1;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventName {
    /// The room isn't won yet.
    Waiting,
    /// The room is won.
    Leader,
    /// The lease was renewed.
    Renewed,
    /// A different node answers now.
    Failover,
    /// A signal asked the command to end.
    Stopping,
    /// The command was started.
    ChildStarted,
    /// The command has ended.
    ChildExited,
    /// The room was given up.
    Released,
    /// A node said that the lease is over, or no node accepts its renewal.
    Lost,
    /// No renewal succeeded before authority ended.
    Uncertain,
    /// A campaign or a resignation failed.
    Error,
}

impl EventName {
    /// The name in JSON and in text.
    pub fn as_str(self) -> &'static str {
        match self {
            EventName::Waiting => "waiting",
            EventName::Leader => "leader",
            EventName::Renewed => "renewed",
            EventName::Failover => "failover",
            EventName::Stopping => "stopping",
            EventName::ChildStarted => "child_started",
            EventName::ChildExited => "child_exited",
            EventName::Released => "released",
            EventName::Lost => "lost",
            EventName::Uncertain => "uncertain",
            EventName::Error => "error",
        }
    }
}

impl Serialize for EventName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An event, with the facts that depend on its kind.
#[derive(Debug, Serialize)]
pub struct Event {
    /// The kind of event. It is not part of this JSON, because [`EventRecord::event`] has it.
    #[serde(skip)]
    pub name: EventName,
    /// The fencing token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// When the lease ends, by the nodes' calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The time until the next campaign can succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Why it happened, as a word for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
    /// The node that answered before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The node that answers now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The leader that this process waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<Leader>,
    /// The process id of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The exit code of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The text for people. It isn't part of the JSON.
    #[serde(skip)]
    pub detail: String,
}

impl Event {
    /// An event without facts.
    pub fn new(name: EventName) -> Event {
        Event {
            name,
            term: None,
            expires_at: None,
            retry_after_ms: None,
            reason_code: None,
            from: None,
            to: None,
            leader: None,
            pid: None,
            exit_code: None,
            detail: String::new(),
        }
    }

    /// An event about a request that failed.
    pub fn of_failure(name: EventName, error: &ClientError) -> Event {
        let without_code = match error {
            ClientError::OutcomeUnknown(_) => "outcome_unknown",
            ClientError::Invalid(_) => "invalid_input",
            _ => "unavailable",
        };
        let reason = error.code().unwrap_or(without_code).to_owned();
        Event { reason_code: Some(reason), detail: error.to_string(), ..Event::new(name) }
    }

    /// The event that ends a leadership.
    pub fn of_loss(reason: &LossReason) -> Event {
        let (name, code) = match reason {
            LossReason::NotCurrent => (EventName::Lost, "lease_not_current"),
            LossReason::Rejected { code } => (EventName::Lost, code.as_str()),
            LossReason::Uncertain => (EventName::Uncertain, "authority_deadline"),
            LossReason::Resigned => (EventName::Released, "resigned"),
        };
        Event { reason_code: Some(code.to_owned()), ..Event::new(name) }
    }
}

/// One line of JSON.
#[derive(Serialize)]
pub struct EventRecord<'a> {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u8,
    /// 1 for the first event of a process, then one more for each.
    pub sequence: u64,
    /// What happened.
    pub event: EventName,
    /// Always `election`.
    pub kind: &'static str,
    /// The room.
    pub name: &'a str,
    /// The node that answered last. Empty before the first answer.
    pub server: &'a str,
    /// The name under which this process campaigns.
    pub candidate_id: &'a str,
    /// The facts that depend on the kind of event.
    #[serde(flatten)]
    pub facts: &'a Event,
    /// Present if the room was won.
    #[serde(flatten)]
    pub authority: Option<Authority>,
    /// When the event was recorded, by this machine's calendar.
    pub observed_at: String,
}

/// How long the holder may act, counted from one moment. Two clocks show that moment.
#[derive(Serialize)]
pub struct Authority {
    /// If this is zero, the holder must not act.
    pub authority_remaining_ms: u64,
    /// The moment on the wall clock.
    pub authority_observed_unix_ms: u64,
    /// The moment on `CLOCK_BOOTTIME`, which also counts while the machine sleeps.
    pub authority_observed_continuous_ms: u64,
}

#[cfg(test)]
mod tests;
