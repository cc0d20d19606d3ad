//! Rooms as people read them.

use std::time::Duration;

use crate::wire::{Leader, RoomStatus};

/// One line about a room. All that is in it passed the checks of the domain, but for the metadata.
pub fn describe(room: &str, leader: Option<&Leader>, retry_after_ms: u64) -> String {
    let Some(leader) = leader else { return format!("{room}: vacant") };
    let Leader { candidate_id, term, .. } = leader;
    let shown = leader.metadata.as_ref().map_or_else(String::new, |text| format!(" ({:?})", text.as_str()));
    format!("{room}: {candidate_id}{shown} leads, term {term}, {} left", seconds(retry_after_ms))
}

/// Rooms one below the other, for people.
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

fn seconds(millis: u64) -> String {
    format!("{:.1} s", Duration::from_millis(millis).as_secs_f32())
}

#[cfg(test)]
mod tests;
