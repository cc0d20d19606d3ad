//! The replicated state as applied on this node: the rooms, the lease clock that follows them, and their watchers.
//!
//! Reads come from here, never from the disk. One lock guards all of it, and no holder of the lock waits for anything.
//! It is held for microseconds, except when a snapshot begins, which copies every lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;

use crate::clock::{Clock, ClockReading, LeaseClock};
use crate::domain::{
    Change, Command, Counters, Judgement, Lease, Limits, LogTime, Outcome, RoomEvent, RoomId, RoomView, Rooms, Stamp,
    StateDigest,
};
use crate::raft_types::{LogId, StoredMembership};

/// A watcher may fall behind by this many views of its room. Then its stream ends.
const VIEWS_KEPT: usize = 64;

/// Unwatched rooms stay in the map of watchers while it is smaller than this.
const WATCHED_UNSWEPT: usize = 64;

/// The replicated state. The state machine writes it, all others read it. Cheap to clone.
#[derive(Clone)]
pub struct Replica {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
}

struct State {
    rooms: Rooms,
    applied: Option<LogId>,
    membership: StoredMembership,
    lease_clock: LeaseClock,
    /// The rooms with watchers. The map is ordered, so that watchers hear of a snapshot in the same order each time.
    watched: BTreeMap<RoomId, broadcast::Sender<RoomView>>,
    /// Unwatched rooms are removed when the map reaches this size.
    watched_max: usize,
}

/// The position in the log and the state without the leases, all of one moment.
#[derive(Debug, Clone)]
pub struct Position {
    /// The last entry applied.
    pub applied: Option<LogId>,
    /// The members at that position.
    pub membership: StoredMembership,
    /// The state without the leases.
    pub counters: Counters,
    /// The digest of the whole state.
    pub digest: StateDigest,
    /// The number of live leases.
    pub live_leases: u64,
}

impl Replica {
    /// The state that was recovered from the disk.
    pub fn new(rooms: Rooms, applied: Option<LogId>, membership: StoredMembership, clock: Arc<dyn Clock>) -> Self {
        let mut lease_clock = LeaseClock::default();
        lease_clock.after_restore(rooms.log_time(), clock.now());
        let state =
            State { rooms, applied, membership, lease_clock, watched: BTreeMap::new(), watched_max: WATCHED_UNSWEPT };
        Self { state: Arc::new(Mutex::new(state)), clock }
    }

    fn now(&self) -> ClockReading {
        self.clock.now()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Applies entries in order and returns their outcomes. Adds the rooms that changed to `touched`.
    pub fn apply<'a>(
        &self,
        entries: impl Iterator<Item = (LogId, EntryKind<'a>)>,
        touched: &mut Vec<RoomId>,
    ) -> Vec<Outcome> {
        let mut state = self.lock();
        let mut outcomes = Vec::new();
        for (log_id, kind) in entries {
            let raft_term = log_id.leader_id.term;
            let outcome = match kind {
                EntryKind::Blank => Outcome::Noted,
                EntryKind::Membership(membership) => {
                    state.membership = membership;
                    Outcome::Noted
                }
                EntryKind::Command(command) => {
                    let effect = state.rooms.apply(raft_term, command);
                    state.publish(&effect.events);
                    touched.extend(effect.events.into_iter().map(|event| event.room));
                    effect.outcome
                }
            };
            state.applied = Some(log_id);
            let log_time = state.rooms.log_time();
            state.lease_clock.after_apply(raft_term, log_time, self.now());
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Replaces the whole state by that of a snapshot. Watchers hear of the rooms that differ now.
    pub fn replace(&self, rooms: Rooms, applied: Option<LogId>, membership: StoredMembership) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.rooms, rooms);
        state.applied = applied;
        state.membership = membership;
        let log_time = state.rooms.log_time();
        state.lease_clock.after_restore(log_time, self.now());
        for room in state.watched.keys() {
            if before.lease(room) != state.rooms.lease(room) {
                state.publish_room(room);
            }
        }
    }

    /// The position in the log and the state without the leases.
    pub fn position(&self) -> Position {
        self.lock().position()
    }

    /// The position and a copy of all leases. A snapshot is written from the copy while applies go on.
    pub fn freeze(&self) -> (Position, Vec<(RoomId, Lease)>) {
        let state = self.lock();
        (state.position(), state.rooms.leases().map(|(room, lease)| (room.clone(), lease.clone())).collect())
    }

    /// The position and the current leases of some rooms.
    pub fn leases_of(&self, rooms: Vec<RoomId>) -> (Position, Vec<(RoomId, Option<Lease>)>) {
        let state = self.lock();
        let leases = rooms.into_iter().map(|room| (room.clone(), state.rooms.lease(&room).cloned())).collect();
        (state.position(), leases)
    }

    /// A stamp for a command that this node is about to propose as raft leader of `raft_term`. `None` if it is not
    /// ready: it has not applied an entry of that raft term yet.
    pub fn stamp(&self, raft_term: u64) -> Option<Stamp> {
        self.lock().lease_clock.stamp(raft_term, self.now())
    }

    /// Judges a change by the raft leader's reading of log time. `None` if [`Replica::stamp`] gives none.
    pub fn judge(&self, change: &Change, raft_term: u64, limits: Limits) -> Option<Judgement> {
        let mut state = self.lock();
        let reading = state.lease_clock.stamp(raft_term, self.now())?.log_time;
        Some(state.rooms.judge(change, reading, limits))
    }

    /// A room by the raft leader's reading of log time. `None` if [`Replica::stamp`] gives none.
    pub fn view_by_raft_leader(&self, room: &RoomId, raft_term: u64) -> Option<RoomView> {
        let mut state = self.lock();
        let reading = state.lease_clock.stamp(raft_term, self.now())?.log_time;
        Some(state.rooms.view_at(room, reading))
    }

    /// A room as far as this node knows.
    pub fn view(&self, room: &RoomId) -> RoomView {
        let state = self.lock();
        state.rooms.view_at(room, state.lease_clock.estimate(self.now()))
    }

    /// The earliest deadline of all leases, and this node's estimate of log time now.
    pub fn next_deadline(&self) -> (Option<LogTime>, LogTime) {
        let state = self.lock();
        (state.rooms.next_deadline(), state.lease_clock.estimate(self.now()))
    }

    /// A room now, and a view of it after every later change. No change is missed or sent twice.
    pub fn watch(&self, room: &RoomId) -> (RoomView, broadcast::Receiver<RoomView>) {
        let mut state = self.lock();
        let view = state.rooms.view_at(room, state.lease_clock.estimate(self.now()));
        state.sweep_watched();
        let views = state.watched.entry(room.clone()).or_insert_with(|| broadcast::channel(VIEWS_KEPT).0);
        (view, views.subscribe())
    }
}

/// The content of a log entry.
pub enum EntryKind<'a> {
    /// Nothing. Such an entry marks the beginning of a reign.
    Blank,
    /// New members.
    Membership(StoredMembership),
    /// A command.
    Command(&'a Command),
}

impl State {
    fn position(&self) -> Position {
        Position {
            applied: self.applied,
            membership: self.membership.clone(),
            counters: self.rooms.counters(),
            digest: self.rooms.digest(),
            live_leases: self.rooms.leases().len() as u64,
        }
    }

    /// Removes unwatched rooms once the map has twice the size that it had after the last sweep. So a new watch pays
    /// for the removal of two rooms on average, however many there are.
    fn sweep_watched(&mut self) {
        if self.watched.len() >= self.watched_max {
            self.watched.retain(|_, views| views.receiver_count() > 0);
            self.watched_max = WATCHED_UNSWEPT.max(2 * self.watched.len());
        }
    }

    fn publish(&self, events: &[RoomEvent]) {
        if self.watched.is_empty() {
            return;
        }
        for (index, event) in events.iter().enumerate() {
            // One command may end a lease and grant the room again. Watchers get one view for both.
            if events[index + 1..].iter().all(|later| later.room != event.room) {
                self.publish_room(&event.room);
            }
        }
    }

    fn publish_room(&self, room: &RoomId) {
        if let Some(views) = self.watched.get(room) {
            // It is no failure if all watchers have left.
            let _ = views.send(self.rooms.view(room));
        }
    }
}

#[cfg(test)]
mod tests;
