//! All rooms together: log time, the one counter of fencing tokens, and the two doors, `judge` and `apply`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    Ask, Campaign, Command, FencingToken, Judgement, Lease, LogTime, Outcome, Proposal, Refusal, Renew, Resign,
    RoomEvent, RoomEventKind, RoomId, RoomView, SecretHash, Stamp, WallTime, fencing_token_max,
};

/// How many leases one tick may end. It bounds the time of one `apply`; what is left is due for the next tick.
const EXPIRIES_PER_TICK_MAX: usize = 1_000;

/// The limits that the raft leader judges by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many leases may live at once.
    pub live_leases_max: u64,
}

/// Ties one moment of log time to the calendar, so that all nodes show the same `expires_at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallAnchor {
    /// The moment.
    pub log_time: LogTime,
    /// What the raft leader's wall clock said then.
    pub wall_time: WallTime,
}

impl WallAnchor {
    /// The calendar time of a moment of log time.
    pub fn wall_time_of(&self, log_time: LogTime) -> WallTime {
        let (moment, anchor) = (log_time.0, self.log_time.0);
        WallTime(
            self.wall_time
                .0
                .saturating_add(moment.saturating_sub(anchor))
                .saturating_sub(anchor.saturating_sub(moment)),
        )
    }
}

/// What the state has beside its leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// The largest stamp applied.
    pub log_time: LogTime,
    /// The last fencing token granted, or the floor; 0 before the first floor.
    pub last_fencing_token: u64,
    /// For display.
    pub wall_anchor: Option<WallAnchor>,
}

/// A short value that is equal on two nodes with equal state, and differs on two with different state but for
/// a chance of 2^-128. It is kept up with each change, whatever the order of the leases.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StateDigest(u128);

impl StateDigest {
    fn add(&mut self, room: &RoomId, lease: &Lease) {
        self.0 = self.0.wrapping_add(digest_of(&(room, lease)));
    }

    fn remove(&mut self, room: &RoomId, lease: &Lease) {
        self.0 = self.0.wrapping_sub(digest_of(&(room, lease)));
    }
}

impl std::fmt::Display for StateDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::fmt::Debug for StateDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// What one command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The answer.
    pub outcome: Outcome,
    /// The rooms that it touched, in the order in which things happened to them.
    pub changes: Vec<RoomEvent>,
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
    /// State as it was stored: the counters, and the leases in any order.
    pub fn restore(counters: Counters, leases: impl IntoIterator<Item = (RoomId, Lease)>) -> Rooms {
        let mut rooms = Rooms { counters, ..Rooms::default() };
        for (room, lease) in leases {
            rooms.put(room, lease);
        }
        rooms
    }

    /// Says whether a request would change anything at `reading`, the raft leader's reading of log time.
    ///
    /// A raft leader asks this before it proposes, so that losing campaigns, wrong secrets and questions cost
    /// no log entry. The answer is only good once a read barrier has confirmed the state that it is based on.
    pub fn judge(&self, ask: &Ask, reading: LogTime, limits: Limits) -> Judgement {
        // `apply` never works with less than log time, so neither does this.
        let reading = reading.max(self.counters.log_time);
        let lease = self.leases.get(ask.room());
        // Whether a lease that is due has ended is for the log to say, so that no reader is ahead of it.
        let due = lease.is_some_and(|lease| lease.is_due(reading));
        let is_holders = |hash: &SecretHash| lease.is_some_and(|lease| lease.secret_hash.matches(hash));
        match ask {
            Ask::View(room) => Judgement::Answer(Outcome::Viewed(self.view_at(room, reading))),
            Ask::Campaign(campaign) if lease.is_some() && !due => {
                Judgement::Answer(Outcome::Occupied(self.view_at(&campaign.room, reading)))
            }
            Ask::Campaign(_) if !due && self.is_full(limits.live_leases_max) => {
                Judgement::Answer(Outcome::Refused(Refusal::CapacityReached))
            }
            Ask::Campaign(campaign) => Judgement::Changes(Proposal::Campaign(campaign.clone())),
            Ask::Renew(renew) if due || is_holders(&renew.secret_hash) => {
                Judgement::Changes(Proposal::Renew(renew.clone()))
            }
            Ask::Resign(resign) if due || is_holders(&resign.secret_hash) => {
                Judgement::Changes(Proposal::Resign(resign.clone()))
            }
            Ask::Renew(_) | Ask::Resign(_) => Judgement::Answer(Outcome::Refused(Refusal::NotHolder)),
        }
    }

    /// Runs one committed command. Every node calls this with the same arguments in the same order, so the
    /// outcome may depend on nothing else.
    ///
    /// `entry_raft_term` is the raft term of the log entry that carries the command.
    pub fn apply(&mut self, entry_raft_term: u64, command: &Command) -> Effect {
        let stamp = command.stamp();
        // A command that was stamped in another reign has a time from a clock that the log has left behind.
        // To take it, with or without its time, would let leases end early; so it is as if it had never been.
        if stamp.raft_term != entry_raft_term {
            return Effect { outcome: Outcome::Refused(Refusal::StaleStamp), changes: Vec::new() };
        }
        self.advance_log_time(stamp);
        let mut changes = Vec::new();
        let outcome = match command {
            Command::Campaign { campaign, live_leases_max, .. } => {
                self.campaign(campaign, *live_leases_max, &mut changes)
            }
            Command::Renew { renew, .. } => self.renew(renew, &mut changes),
            Command::Resign { resign, .. } => self.resign(resign, &mut changes),
            Command::Tick { .. } => self.tick(&mut changes),
            Command::AnchorWallClock { wall_time, .. } => {
                self.counters.wall_anchor =
                    Some(WallAnchor { log_time: self.counters.log_time, wall_time: *wall_time });
                Outcome::Noted
            }
            Command::RaiseFencingFloor { floor, .. } => {
                let floor = floor.0.min(fencing_token_max().0);
                self.counters.last_fencing_token = self.counters.last_fencing_token.max(floor);
                Outcome::Noted
            }
        };
        Effect { outcome, changes }
    }

    fn advance_log_time(&mut self, stamp: Stamp) {
        self.counters.log_time = self.counters.log_time.max(stamp.log_time);
    }

    fn campaign(&mut self, campaign: &Campaign, live_leases_max: u64, changes: &mut Vec<RoomEvent>) -> Outcome {
        self.end_if_due(&campaign.room, changes);
        if self.leases.contains_key(&campaign.room) {
            return Outcome::Occupied(self.view(&campaign.room));
        }
        if self.counters.last_fencing_token == 0 {
            return Outcome::Refused(Refusal::NotReady);
        }
        if self.is_full(live_leases_max) || self.counters.last_fencing_token >= fencing_token_max().0 {
            return Outcome::Refused(Refusal::CapacityReached);
        }
        self.counters.last_fencing_token += 1;
        let token = FencingToken(self.counters.last_fencing_token);
        self.put(campaign.room.clone(), Lease::grant(campaign, token, self.counters.log_time));
        changes.push(RoomEvent { room: campaign.room.clone(), kind: RoomEventKind::Granted });
        Outcome::Granted(self.view(&campaign.room))
    }

    fn renew(&mut self, renew: &Renew, changes: &mut Vec<RoomEvent>) -> Outcome {
        self.end_if_due(&renew.room, changes);
        let Some(mut lease) = self.lease_with_secret(&renew.room, &renew.secret_hash) else {
            return Outcome::Refused(Refusal::NotHolder);
        };
        lease.renew(renew, self.counters.log_time);
        self.put(renew.room.clone(), lease);
        changes.push(RoomEvent { room: renew.room.clone(), kind: RoomEventKind::Renewed });
        Outcome::Renewed(self.view(&renew.room))
    }

    fn resign(&mut self, resign: &Resign, changes: &mut Vec<RoomEvent>) -> Outcome {
        self.end_if_due(&resign.room, changes);
        let Some(lease) = self.lease_with_secret(&resign.room, &resign.secret_hash) else {
            return Outcome::Refused(Refusal::NotHolder);
        };
        self.remove(&resign.room);
        changes.push(RoomEvent { room: resign.room.clone(), kind: RoomEventKind::Resigned });
        Outcome::Resigned(lease.fencing_token)
    }

    fn tick(&mut self, changes: &mut Vec<RoomEvent>) -> Outcome {
        for _ in 0..EXPIRIES_PER_TICK_MAX {
            let Some(room) = self.next_due() else {
                return Outcome::Ticked { more_due: false };
            };
            self.remove(&room);
            changes.push(RoomEvent { room, kind: RoomEventKind::Expired });
        }
        Outcome::Ticked { more_due: self.next_due().is_some() }
    }

    fn next_due(&self) -> Option<RoomId> {
        let (deadline, room) = self.deadlines.first()?;
        (*deadline <= self.counters.log_time).then(|| room.clone())
    }

    fn end_if_due(&mut self, room: &RoomId, changes: &mut Vec<RoomEvent>) {
        if self.leases.get(room).is_some_and(|lease| lease.is_due(self.counters.log_time)) {
            self.remove(room);
            changes.push(RoomEvent { room: room.clone(), kind: RoomEventKind::Expired });
        }
    }

    fn lease_with_secret(&self, room: &RoomId, secret_hash: &super::SecretHash) -> Option<Lease> {
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

    /// How a room stands at the last applied log time.
    pub fn view(&self, room: &RoomId) -> RoomView {
        self.view_at(room, self.counters.log_time)
    }

    /// How a room stands at a later reading of log time.
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

    /// The deadline that comes first.
    pub fn next_deadline(&self) -> Option<LogTime> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The state beside the leases.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The largest stamp applied.
    pub fn log_time(&self) -> LogTime {
        self.counters.log_time
    }

    /// A value that is equal on nodes with equal state.
    pub fn digest(&self) -> StateDigest {
        StateDigest(self.leases_digest.0.wrapping_add(digest_of(&self.counters)))
    }
}

/// SHA-256 of a canonical form: serde_json writes the fields of a struct in their order.
fn digest_of(value: &impl Serialize) -> u128 {
    let mut hash = Sha256::new();
    serde_json::to_writer(&mut HashWriter(&mut hash), value)
        .expect("a domain value is always JSON, and hashing cannot fail");
    let bytes: [u8; 32] = hash.finalize().into();
    u128::from_be_bytes(bytes[..16].try_into().expect("16 of 32 bytes"))
}

struct HashWriter<'a>(&'a mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
