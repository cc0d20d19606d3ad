//! Rooms and events as text for people.

use std::time::Duration;

use super::event::{Event, EventName};
use crate::wire::{Leader, RoomStatus};

/// One line about a room. The metadata is quoted because it may contain anything, such as control characters for the
/// terminal. All other parts have passed the checks of the domain.
pub fn describe(room: &str, leader: Option<&Leader>, retry_after_ms: u64) -> String {
    let Some(leader) = leader else { return format!("{room}: vacant") };
    let Leader { candidate_id, term, .. } = leader;
    let shown = leader.metadata.as_ref().map_or_else(String::new, |text| format!(" ({:?})", text.as_str()));
    format!("{room}: {candidate_id}{shown} leads, term {term}, {} left", seconds(retry_after_ms))
}

/// A table of rooms.
pub fn table(rooms: &[RoomStatus]) -> String {
    let heading = ["ROOM", "LEADER", "TERM", "LEFT", "METADATA"].map(str::to_owned);
    let rows = rooms.iter().map(|room| match &room.leader {
        None => [room.election_id.to_string(), "vacant".into(), String::new(), String::new(), String::new()],
        Some(Leader { candidate_id, metadata, term, .. }) => [
            room.election_id.to_string(),
            candidate_id.to_string(),
            term.to_string(),
            seconds(room.retry_after_ms),
            metadata.as_ref().map_or_else(String::new, |text| format!("{:?}", text.as_str())),
        ],
    });
    let lines: Vec<_> = std::iter::once(heading).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for [room, leader, term, left, metadata] in &lines {
        let [a, b, c, d] = widths;
        let line = format!("{room:<a$}  {leader:<b$}  {term:<c$}  {left:>d$}  {metadata}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// One line about an event.
pub fn event_text(room: &str, candidate: &str, event: &Event) -> String {
    let Event { name, leader, retry_after_ms, reason_code, term, detail, .. } = event;
    let reason = reason_code.as_deref().unwrap_or_default();
    match name {
        EventName::Waiting => match leader {
            Some(leader) if leader.candidate_id.as_str() == candidate => {
                format!("{room}: waiting; {candidate} leads already, by another campaign under the same name")
            }
            Some(leader) => {
                let line = describe(room, Some(leader), retry_after_ms.unwrap_or_default());
                // The remaining time is cut off. So the line stays the same until the leader changes.
                let line = line.rsplit_once(", ").map_or(line.as_str(), |(line, _)| line);
                format!("{line}; waiting")
            }
            None if detail.is_empty() => format!("{room}: waiting"),
            None => format!("{room}: waiting; {detail}"),
        },
        EventName::Leader => format!("{room}: {candidate} leads, term {}", term.unwrap_or_default()),
        EventName::Lost | EventName::Uncertain | EventName::Error if detail.is_empty() => {
            format!("{room}: {} ({reason})", name.as_str())
        }
        EventName::Lost | EventName::Uncertain | EventName::Error => {
            format!("{room}: {} ({reason}): {detail}", name.as_str())
        }
        EventName::Stopping => format!("{room}: stopping ({reason})"),
        _ if detail.is_empty() => format!("{room}: {}", name.as_str()),
        _ => format!("{room}: {detail}"),
    }
}

fn seconds(millis: u64) -> String {
    format!("{:.1} s", Duration::from_millis(millis).as_secs_f32())
}

#[cfg(test)]
mod tests;
