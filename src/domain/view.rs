//! How a room looks from outside, and what can happen to it.

use serde::{Deserialize, Serialize};

use super::ids::RoomId;
use super::lease::Lease;
use super::log_time::{LogTime, WallAnchor, WallTime};

/// A room at one moment of log time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomView {
    /// The lease. `None` if the room is vacant.
    pub lease: Option<Lease>,
    /// The moment. In an answer of the raft leader it is that node's reading, which is never behind a stamp. So the
    /// holder's remaining time can be computed from it. In a local view it is only an estimate.
    pub log_time: LogTime,
    /// Ties log time to the calendar.
    pub wall_anchor: Option<WallAnchor>,
}

impl RoomView {
    /// The calendar time at which the lease's promise ends. For display only.
    pub fn expires_at(&self) -> Option<WallTime> {
        let (lease, anchor) = (self.lease.as_ref()?, self.wall_anchor?);
        Some(anchor.wall_time_of(lease.promised_until))
    }
}

/// An event in the life of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomEvent {
    /// The room.
    pub room: RoomId,
    /// The kind of event.
    pub kind: RoomEventKind,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomEventKind {
    /// A contender won the room.
    Granted,
    /// The holder extended its lease.
    Renewed,
    /// The holder gave the room up.
    Resigned,
    /// The deadline of the lease has passed.
    Expired,
}
