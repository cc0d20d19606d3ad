//! What has been applied here: the rooms, the lease clock that they drive, and who wants to hear of changes.
//!
//! Reads come from here, never from the disk. One lock guards it all, and nothing waits while holding it. It is held
//! for microseconds, but by who begins a snapshot: that one copies every lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;

use crate::clock::{Clock, ClockReading, LeaseClock};
use crate::domain::{
    Ask, Command, Counters, Judgement, Lease, Limits, LogTime, Outcome, RoomEvent, RoomId, RoomView, Rooms, Stamp,
    StateDigest,
};
use crate::raft_types::{LogId, StoredMembership};

/// How many changes of one room a reader may fall behind. More than that, and its stream ends.
const CHANGES_KEPT: usize = 64;

/// How many rooms may be kept as watched before it is looked whether they are.
const WATCHED_UNSWEPT: usize = 64;

/// Shared by the state machine, which writes, and everybody who reads.
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
    /// Only rooms that somebody watches; in order, so that a snapshot is told of in the same order each time.
    watched: BTreeMap<RoomId, broadcast::Sender<RoomView>>,
    /// At how many of them those that nobody watches any more are cleared away.
    watched_max: usize,
}

/// State and its position in the log, all of one moment.
#[derive(Debug, Clone)]
pub struct Position {
    /// The last entry applied.
    pub applied: Option<LogId>,
    /// The members as of then.
    pub membership: StoredMembership,
    /// The state beside the leases.
    pub counters: Counters,
    /// A digest of everything.
    pub digest: StateDigest,
    /// How many leases live.
    pub live_leases: u64,
}

impl Replica {
    /// State as it was recovered.
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
        // A panic while the lock was held would be a bug in `domain`; the node's panic hook has it on record,
        // and openraft stops the node when `apply` panics.
        self.state.lock()
    }

    /// Applies a run of entries, and says for each what it answered. `touched` gets the rooms that changed.
    pub fn apply<'a>(
        &self,
        entries: impl Iterator<Item = (LogId, EntryKind<'a>)>,
        touched: &mut Vec<RoomId>,
    ) -> Vec<Option<Outcome>> {
        let mut state = self.lock();
        let mut outcomes = Vec::new();
        for (log_id, kind) in entries {
            let raft_term = log_id.leader_id.term;
            let outcome = match kind {
                EntryKind::Blank => None,
                EntryKind::Membership(membership) => {
                    state.membership = membership;
                    None
                }
                EntryKind::Command(command) => {
                    let applied = state.rooms.apply(raft_term, command);
                    state.publish(&applied.changes);
                    touched.extend(applied.changes.into_iter().map(|change| change.room));
                    Some(applied.outcome)
                }
            };
            state.applied = Some(log_id);
            let log_time = state.rooms.log_time();
            state.lease_clock.after_apply(raft_term, log_time, self.now());
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Replaces everything, as a snapshot does. Watchers hear of the rooms that stand otherwise now.
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

    /// The position in the log, and what goes with it.
    pub fn position(&self) -> Position {
        self.lock().position()
    }

    /// The position, and all leases. The copy is what a snapshot is written from while applies go on.
    pub fn freeze(&self) -> (Position, Vec<(RoomId, Lease)>) {
        let state = self.lock();
        (state.position(), state.rooms.leases().map(|(room, lease)| (room.clone(), lease.clone())).collect())
    }

    /// The position, and the leases of some rooms as they stand.
    pub fn leases_of(&self, rooms: Vec<RoomId>) -> (Position, Vec<(RoomId, Option<Lease>)>) {
        let state = self.lock();
        let leases = rooms.into_iter().map(|room| (room.clone(), state.rooms.lease(&room).cloned())).collect();
        (state.position(), leases)
    }

    /// A stamp for a command that the raft leader of `raft_term`, this node, is about to propose.
    pub fn stamp(&self, raft_term: u64) -> Option<Stamp> {
        self.lock().lease_clock.stamp(raft_term, self.now())
    }

    /// Judges a request by the raft leader's reading of log time. `None` where it can't read it.
    pub fn judge(&self, ask: &Ask, raft_term: u64, limits: Limits) -> Option<Judgement> {
        let mut state = self.lock();
        let reading = state.lease_clock.stamp(raft_term, self.now())?.log_time;
        Some(state.rooms.judge(ask, reading, limits))
    }

    /// How a room stands as far as this node knows.
    pub fn view(&self, room: &RoomId) -> RoomView {
        let state = self.lock();
        state.rooms.view_at(room, state.lease_clock.estimate(self.now()))
    }

    /// The deadline that comes first, and log time as it is likely to be by now.
    pub fn next_deadline(&self) -> (Option<LogTime>, LogTime) {
        let state = self.lock();
        (state.rooms.next_deadline(), state.lease_clock.estimate(self.now()))
    }

    /// How a room stands, and every change from then on: none is missed in between, and none is told twice.
    pub fn watch(&self, room: &RoomId) -> (RoomView, broadcast::Receiver<RoomView>) {
        let mut state = self.lock();
        let view = state.rooms.view_at(room, state.lease_clock.estimate(self.now()));
        state.sweep_watched();
        let changes = state.watched.entry(room.clone()).or_insert_with(|| broadcast::channel(CHANGES_KEPT).0);
        (view, changes.subscribe())
    }
}

/// What an entry asks of the state.
pub enum EntryKind<'a> {
    /// Nothing: it marks the beginning of a reign.
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

    /// Clears away what watchers have left, once there is twice as much as was in use the last time. So each watch
    /// that begins pays for two at most, however many there are.
    fn sweep_watched(&mut self) {
        if self.watched.len() >= self.watched_max {
            self.watched.retain(|_, changes| changes.receiver_count() > 0);
            self.watched_max = WATCHED_UNSWEPT.max(2 * self.watched.len());
        }
    }

    fn publish(&self, changes: &[RoomEvent]) {
        if self.watched.is_empty() {
            return;
        }
        for (index, change) in changes.iter().enumerate() {
            // A lease that ended and a grant in its place are one step of the log, and so one event.
            if changes[index + 1..].iter().all(|later| later.room != change.room) {
                self.publish_room(&change.room);
            }
        }
    }

    fn publish_room(&self, room: &RoomId) {
        if let Some(changes) = self.watched.get(room) {
            // Nobody listening is no failure.
            let _ = changes.send(self.rooms.view(room));
        }
    }
}

#[cfg(test)]
mod tests;
