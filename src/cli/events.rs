//! What `quorate hold` and `quorate run` tell while they go: a line of JSON for each event, or a line of text.
//!
//! Names and fields are those of OctoStore's command line, so that a supervisor written for it reads ours; new are
//! `child_started`, `child_exited`, `stopping` and `failover`. A reader ignores what it doesn't know. No event has
//! a token.

use std::io::Write;

use serde::Serialize;

use super::output::Output;
use super::text::describe;
use crate::client::{Deadline, HolderClock, SystemHolderClock};
use crate::domain::{WallTime, millis};
use crate::wire::{Leader, rfc_3339};

/// The version of [`Event`]'s shape.
pub const SCHEMA_VERSION: u8 = 1;

/// What there is to say about an event besides its name.
#[derive(Debug, Default, Serialize)]
pub struct Event {
    /// The fencing token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// When the lease ends, by the nodes' calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it may be worth campaigning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
    /// The node that answered before. Ours, as are all below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The node that answers now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Who leads instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<Leader>,
    /// The command's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How the command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// For people.
    #[serde(skip)]
    pub detail: String,
}

/// An event as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    schema_version: u8,
    sequence: u64,
    event: &'static str,
    kind: &'static str,
    name: &'a str,
    server: &'a str,
    candidate_id: &'a str,
    #[serde(flatten)]
    facts: &'a Event,
    #[serde(flatten)]
    authority: Option<Authority>,
    observed_at: String,
}

/// How long the holder may act, counted from the moment that the two clocks show.
#[derive(Serialize)]
struct Authority {
    authority_remaining_ms: u64,
    authority_observed_unix_ms: u64,
    /// `CLOCK_BOOTTIME`.
    authority_observed_continuous_ms: u64,
}

/// Writes events to stdout, or for people to stderr.
pub struct Emitter {
    output: Output,
    to_stderr: bool,
    sequence: u64,
    room: String,
    candidate: String,
    last_text: String,
}

impl Emitter {
    /// Events are what stdout is for.
    pub fn on_stdout(output: Output, room: &str, candidate: &str) -> Emitter {
        let (room, candidate) = (room.to_owned(), candidate.to_owned());
        Emitter { output, to_stderr: false, sequence: 0, room, candidate, last_text: String::new() }
    }

    /// Stdout belongs to somebody else.
    pub fn on_stderr(output: Output, room: &str, candidate: &str) -> Emitter {
        Emitter { to_stderr: true, ..Emitter::on_stdout(output, room, candidate) }
    }

    /// Tells an event, with what is left of the authority if there is one.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub fn emit(
        &mut self,
        name: &'static str,
        server: &str,
        authority: Option<Deadline>,
        event: Event,
    ) -> std::io::Result<()> {
        self.sequence += 1;
        // What a reader can compare with its own clocks comes first: a pause between here and the next reading makes
        // the remainder shorter, never longer.
        let observed = SystemHolderClock.now();
        let authority = authority.map(|deadline| Authority {
            authority_remaining_ms: millis(deadline.remaining(SystemHolderClock.now())),
            authority_observed_unix_ms: millis(observed.wall),
            authority_observed_continuous_ms: millis(observed.boot),
        });
        let text = self.output == Output::Text;
        let line = if text {
            self.text(name, &event)
        } else {
            serde_json::to_string(&Line {
                schema_version: SCHEMA_VERSION,
                sequence: self.sequence,
                event: name,
                kind: "election",
                name: &self.room,
                server,
                candidate_id: &self.candidate,
                facts: &event,
                authority,
                observed_at: rfc_3339(WallTime(millis(observed.wall))),
            })?
        };
        if text && line == self.last_text {
            // A person has read it already.
            return Ok(());
        }
        let result =
            if self.to_stderr { write_line(std::io::stderr(), &line) } else { write_line(std::io::stdout(), &line) };
        self.last_text = line;
        result
    }

    fn text(&self, name: &str, event: &Event) -> String {
        let Event { leader, retry_after_ms, reason_code, term, detail, .. } = event;
        let (room, who) = (&self.room, &self.candidate);
        let reason = reason_code.as_deref().unwrap_or_default();
        match name {
            "waiting" => match leader {
                Some(leader) if leader.candidate_id.as_str() == who => {
                    format!("{room}: waiting; {who} leads already, by another campaign of this name")
                }
                Some(leader) => {
                    let line = describe(room, Some(leader), retry_after_ms.unwrap_or_default());
                    // Without the remaining time, it is the same line until something has changed.
                    let line = line.rsplit_once(", ").map_or(line.as_str(), |(line, _)| line);
                    format!("{line}; waiting")
                }
                None if detail.is_empty() => format!("{room}: waiting"),
                None => format!("{room}: waiting; {detail}"),
            },
            "leader" => format!("{room}: {who} leads, term {}", term.unwrap_or_default()),
            "lost" | "uncertain" | "error" if detail.is_empty() => format!("{room}: {name} ({reason})"),
            "lost" | "uncertain" | "error" => format!("{room}: {name} ({reason}): {detail}"),
            "stopping" => format!("{room}: stopping ({reason})"),
            _ if detail.is_empty() => format!("{room}: {name}"),
            _ => format!("{room}: {detail}"),
        }
    }
}

fn write_line(mut to: impl Write, line: &str) -> std::io::Result<()> {
    // One write, so that lines of several processes don't mix; and nothing stays in a buffer.
    to.write_all(format!("{line}\n").as_bytes())?;
    to.flush()
}

#[cfg(test)]
mod tests;
