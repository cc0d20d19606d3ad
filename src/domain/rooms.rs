//! All rooms together: log time, the one counter of fencing tokens, and the two ways in, `judge` and `apply`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::change::{Campaign, Change, Renew, Resign};
use super::command::Command;
use super::digest::StateDigest;
use super::ids::{FencingToken, RoomId, SecretHash, fencing_token_max};
use super::lease::Lease;
use super::log_time::{LogTime, Stamp, WallAnchor};
use super::outcome::{Judgement, Outcome, Refusal};
use super::view::{RoomEvent, RoomEventKind, RoomView};

/// One tick ends at most this many leases, to bound the time of one `apply`. The next tick ends the rest.
const EXPIRIES_PER_TICK_MAX: usize = 1_000;

/// The raft leader's limits for its judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many leases may live at once.
    pub live_leases_max: u64,
}

/// The replicated state without the leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// The largest stamp applied.
    pub log_time: LogTime,
    /// The last fencing token granted, or the floor if that is higher. 0 before the first floor.
    pub last_fencing_token: u64,
    /// The link between log time and the calendar, for display.
    pub wall_anchor: Option<WallAnchor>,
    /// The raft term in which the floor was last raised. 0 before the first floor.
    pub floor_raft_term: u64,
}

/// The effect of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its result.
    pub outcome: Outcome,
    /// Its events in rooms, in order.
    pub events: Vec<RoomEvent>,
}

/// The replicated state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rooms {
    counters: Counters,
    leases: BTreeMap<RoomId, Lease>,
    deadlines: BTreeSet<(LogTime, RoomId)>,
    leases_digest: StateDigest,
}

impl Rooms {
    /// The state from its stored parts. The leases may come in any order.
    pub fn restore(counters: Counters, leases: impl IntoIterator<Item = (RoomId, Lease)>) -> Rooms {
        let mut rooms = Rooms { counters, ..Rooms::default() };
        for (room, lease) in leases {
            rooms.put(room, lease);
        }
        rooms
    }

    /// Says whether a change would have any effect at `reading`, the raft leader's reading of log time.
    ///
    /// The raft leader asks this before it proposes. So a campaign for an occupied room and a wrong secret cost no log
    /// entry. An answer is only good once a read barrier has confirmed the state behind it.
    pub fn judge(&self, change: &Change, reading: LogTime, limits: Limits) -> Judgement {
        // `apply` never works with less than log time, so neither does this.
        let reading = reading.max(self.counters.log_time);
        let lease = self.leases.get(change.room());
        // Only the log can end a lease that is due. Otherwise a reader could be ahead of the log.
        let due = lease.is_some_and(|lease| lease.is_due(reading));
        let is_holders = |hash: &SecretHash| lease.is_some_and(|lease| lease.secret_hash.matches(hash));
        match change {
            Change::Campaign(campaign) if lease.is_some() && !due => {
                Judgement::Answer(Outcome::Occupied(self.view_at(&campaign.room, reading)))
            }
            Change::Campaign(_) if !due && self.is_full(limits.live_leases_max) => {
                Judgement::Answer(Outcome::Refused(Refusal::CapacityReached))
            }
            Change::Campaign(_) => Judgement::Propose,
            Change::Renew(Renew { secret_hash, .. }) | Change::Resign(Resign { secret_hash, .. }) => {
                if due || is_holders(secret_hash) {
                    Judgement::Propose
                } else {
                    Judgement::Answer(Outcome::Refused(Refusal::NotHolder))
                }
            }
        }
    }

    /// Runs one committed command. Every node calls this with the same arguments in the same order, so the
    /// outcome may depend on nothing else.
    ///
    /// `entry_raft_term` is the raft term of the log entry that carries the command.
    pub fn apply(&mut self, entry_raft_term: u64, command: &Command) -> Effect {
        let stamp = command.stamp();
        // A stamp of another reign comes from a clock that the log has left behind. With that time leases could end
        // early, so the command has no effect at all.
        if stamp.raft_term != entry_raft_term {
            return Effect { outcome: Outcome::Refused(Refusal::StaleStamp), events: Vec::new() };
        }
        self.advance_log_time(stamp);
        let mut events = Vec::new();
        let outcome = match command {
            Command::Campaign { campaign, live_leases_max, .. } => {
                self.campaign(campaign, *live_leases_max, entry_raft_term, &mut events)
            }
            Command::Renew { renew, .. } => self.renew(renew, &mut events),
            Command::Resign { resign, .. } => self.resign(resign, &mut events),
            Command::Tick { .. } => self.tick(&mut events),
            Command::AnchorWallClock { wall_time, .. } => {
                self.counters.wall_anchor =
                    Some(WallAnchor { log_time: self.counters.log_time, wall_time: *wall_time });
                Outcome::Noted
            }
            Command::RaiseFencingFloor { floor, .. } => {
                let floor = floor.0.min(fencing_token_max().0);
                self.counters.last_fencing_token = self.counters.last_fencing_token.max(floor);
                self.counters.floor_raft_term = entry_raft_term;
                Outcome::Noted
            }
        };
        Effect { outcome, events }
    }

    fn advance_log_time(&mut self, stamp: Stamp) {
        self.counters.log_time = self.counters.log_time.max(stamp.log_time);
    }

    fn campaign(
        &mut self,
        campaign: &Campaign,
        live_leases_max: u64,
        raft_term: u64,
        events: &mut Vec<RoomEvent>,
    ) -> Outcome {
        self.end_if_due(&campaign.room, events);
        if self.leases.contains_key(&campaign.room) {
            return Outcome::Occupied(self.view(&campaign.room));
        }
        // The nodes may have started from old copies of their data. Then only a new floor is above the tokens that were
        // granted after the copies were made.
        if self.counters.floor_raft_term != raft_term {
            return Outcome::Refused(Refusal::NotReady);
        }
        if self.is_full(live_leases_max) || self.counters.last_fencing_token >= fencing_token_max().0 {
            return Outcome::Refused(Refusal::CapacityReached);
        }
        self.counters.last_fencing_token += 1;
        let token = FencingToken(self.counters.last_fencing_token);
        self.put(campaign.room.clone(), Lease::grant(campaign, token, self.counters.log_time));
        events.push(RoomEvent { room: campaign.room.clone(), kind: RoomEventKind::Granted });
        Outcome::Granted(self.view(&campaign.room))
    }

    fn renew(&mut self, renew: &Renew, events: &mut Vec<RoomEvent>) -> Outcome {
        self.end_if_due(&renew.room, events);
        let Some(mut lease) = self.lease_with_secret(&renew.room, &renew.secret_hash) else {
            return Outcome::Refused(Refusal::NotHolder);
        };
        lease.renew(renew, self.counters.log_time);
        self.put(renew.room.clone(), lease);
        events.push(RoomEvent { room: renew.room.clone(), kind: RoomEventKind::Renewed });
        Outcome::Renewed(self.view(&renew.room))
    }

    fn resign(&mut self, resign: &Resign, events: &mut Vec<RoomEvent>) -> Outcome {
        self.end_if_due(&resign.room, events);
        let Some(lease) = self.lease_with_secret(&resign.room, &resign.secret_hash) else {
            return Outcome::Refused(Refusal::NotHolder);
        };
        self.remove(&resign.room);
        events.push(RoomEvent { room: resign.room.clone(), kind: RoomEventKind::Resigned });
        Outcome::Resigned(lease.fencing_token)
    }

    fn tick(&mut self, events: &mut Vec<RoomEvent>) -> Outcome {
        for _ in 0..EXPIRIES_PER_TICK_MAX {
            let Some(room) = self.next_due() else {
                return Outcome::Ticked { more_due: false };
            };
            self.remove(&room);
            events.push(RoomEvent { room, kind: RoomEventKind::Expired });
        }
        Outcome::Ticked { more_due: self.next_due().is_some() }
    }

    fn next_due(&self) -> Option<RoomId> {
        let (deadline, room) = self.deadlines.first()?;
        (*deadline <= self.counters.log_time).then(|| room.clone())
    }

    fn end_if_due(&mut self, room: &RoomId, events: &mut Vec<RoomEvent>) {
        if self.leases.get(room).is_some_and(|lease| lease.is_due(self.counters.log_time)) {
            self.remove(room);
            events.push(RoomEvent { room: room.clone(), kind: RoomEventKind::Expired });
        }
    }

    fn lease_with_secret(&self, room: &RoomId, secret_hash: &SecretHash) -> Option<Lease> {
        self.leases.get(room).filter(|lease| lease.secret_hash.matches(secret_hash)).cloned()
    }

    fn is_full(&self, live_leases_max: u64) -> bool {
        self.leases.len() as u64 >= live_leases_max
    }

    fn put(&mut self, room: RoomId, lease: Lease) {
        self.remove(&room);
        self.leases_digest.add(&room, &lease);
        self.deadlines.insert((lease.deadline, room.clone()));
        self.leases.insert(room, lease);
    }

    fn remove(&mut self, room: &RoomId) {
        if let Some(lease) = self.leases.remove(room) {
            self.leases_digest.remove(room, &lease);
            self.deadlines.remove(&(lease.deadline, room.clone()));
        }
    }

    /// A room at the last applied log time.
    pub fn view(&self, room: &RoomId) -> RoomView {
        self.view_at(room, self.counters.log_time)
    }

    /// A room at a later reading of log time.
    pub fn view_at(&self, room: &RoomId, reading: LogTime) -> RoomView {
        RoomView {
            lease: self.leases.get(room).cloned(),
            log_time: reading.max(self.counters.log_time),
            wall_anchor: self.counters.wall_anchor,
        }
    }

    /// A room's lease.
    pub fn lease(&self, room: &RoomId) -> Option<&Lease> {
        self.leases.get(room)
    }

    /// All leases, ordered by room.
    pub fn leases(&self) -> impl ExactSizeIterator<Item = (&RoomId, &Lease)> {
        self.leases.iter()
    }

    /// The earliest deadline of all leases.
    pub fn next_deadline(&self) -> Option<LogTime> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The state without the leases.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The largest stamp applied.
    pub fn log_time(&self) -> LogTime {
        self.counters.log_time
    }

    /// The digest of the whole state.
    pub fn digest(&self) -> StateDigest {
        self.leases_digest.with(&self.counters)
    }
}

#[cfg(test)]
mod tests;
