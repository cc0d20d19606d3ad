//! Writes events, each as one line of JSON or of text.

use std::io::Write;

use parking_lot::Mutex;

use super::event::{Authority, Event, EventRecord, SCHEMA_VERSION};
use super::output::Output;
use super::text::event_text;
use crate::client::{HolderClock, Leadership, SystemHolderClock};
use crate::domain::{WallTime, millis};
use crate::wire::rfc_3339;

/// Writes the events of one process about one room.
pub struct Emitter {
    output: Output,
    to_stderr: bool,
    room: String,
    candidate: String,
    /// Locked while a line is written, so that the sequence numbers are in the order of the lines.
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    sequence: u64,
    last_text: String,
}

impl Emitter {
    /// For `quorate hold`, whose output is the events.
    pub fn on_stdout(output: Output, room: &str, candidate: &str) -> Emitter {
        let (room, candidate) = (room.to_owned(), candidate.to_owned());
        Emitter { output, to_stderr: false, room, candidate, written: Mutex::default() }
    }

    /// For `quorate run`, whose stdout belongs to the command.
    pub fn on_stderr(output: Output, room: &str, candidate: &str) -> Emitter {
        Emitter { to_stderr: true, ..Emitter::on_stdout(output, room, candidate) }
    }

    /// Writes an event. If the leadership is given, the event also gets its term and the remaining time of authority.
    ///
    /// # Errors
    /// If the line can't be written, because the reader has closed the pipe, for example.
    pub fn emit(&self, server: &str, leadership: Option<&Leadership>, mut event: Event) -> std::io::Result<()> {
        if let Some(leadership) = leadership {
            event.term = Some(leadership.term().0);
        }
        let authority = leadership.map(Leadership::authority);
        let mut written = self.written.lock();
        written.sequence += 1;
        if self.output == Output::Text {
            let line = event_text(&self.room, &self.candidate, &event);
            // As text, many renewals look the same. One line is enough for a person.
            if line == written.last_text {
                return Ok(());
            }
            let result = self.write(&line);
            written.last_text = line;
            return result;
        }
        // The clocks that a reader can compare with its own are read first. If this process is paused before the
        // second reading, the remaining time is too short, never too long.
        let observed = SystemHolderClock.now();
        let authority = authority.map(|deadline| Authority {
            authority_remaining_ms: millis(deadline.remaining(SystemHolderClock.now())),
            authority_observed_unix_ms: millis(observed.wall),
            authority_observed_continuous_ms: millis(observed.boot),
        });
        self.write(&serde_json::to_string(&EventRecord {
            schema_version: SCHEMA_VERSION,
            sequence: written.sequence,
            event: event.name,
            kind: "election",
            name: &self.room,
            server,
            candidate_id: &self.candidate,
            facts: &event,
            authority,
            observed_at: rfc_3339(WallTime(millis(observed.wall))),
        })?)
    }

    fn write(&self, line: &str) -> std::io::Result<()> {
        if self.to_stderr { write_line(std::io::stderr(), line) } else { write_line(std::io::stdout(), line) }
    }
}

fn write_line(mut to: impl Write, line: &str) -> std::io::Result<()> {
    // One write for the whole line, so that lines of several processes don't mix. The flush leaves nothing in a buffer.
    to.write_all(format!("{line}\n").as_bytes())?;
    to.flush()
}
