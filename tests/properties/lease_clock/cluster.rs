//! Three nodes, and the events that can happen to them. Raft is a model that keeps raft's promises. Clocks have wrong
//! rates, and stall. Each node has the real `Rooms`, and the real or a broken source of stamps.
//!
//! Snapshots, restarts and slow appliers are modelled as far as `LeaseClock` can see them.

mod raft;

use std::rc::Rc;

use quorate::clock::ClockReading;
use quorate::domain::{
    Campaign, Command, ContenderId, Counters, FencingToken, LeaseDuration, LogTime, Nonce, Renew, Resign, RoomId,
    Rooms, SecretHash, Stamp, WallTime,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::rules::{Rule, Stamper};
use super::simulated_clock::SimulatedClock;
use super::watch::{Coverage, MILLISECOND, MINUTE, Moment, SECOND, Violation, Watch};

const NODES: usize = 3;
const STEPS: usize = 300;
const DAY: i64 = 86_400_000;
const LIVE_LEASES_MAX: u64 = 100;

/// One entry of the raft log. Raft's own entries have no command.
struct Entry {
    raft_term: u64,
    proposal: Option<Proposal>,
}

/// A stamped command, and the real moment of its stamp.
struct Proposal {
    command: Command,
    stamped_at: Moment,
}

struct Node {
    clock: SimulatedClock,
    wall_offset_ms: i64,
    raft_term: u64,
    /// The raft term in which this node believes that it is raft leader.
    reign: Option<u64>,
    /// The last raft term in which this node was raft leader.
    led: u64,
    /// How much of this raft leader's log each node is known to have, in this reign.
    acknowledged: [usize; NODES],
    log: Vec<Rc<Entry>>,
    committed: usize,
    applied: usize,
    rooms: Rooms,
    stamper: Stamper,
    snapshot: (usize, Rooms),
}

/// The nodes, and the real time, which no node knows.
pub struct Cluster {
    rule: Rule,
    random: StdRng,
    now: Moment,
    nodes: [Node; NODES],
    raft_term: u64,
    /// A node whose messages, in both directions, are lost.
    cut_off: Option<usize>,
    /// Commands that are stamped, and not yet in any log.
    delayed: Vec<Proposal>,
    secrets: u64,
    /// The committed entries, and below a replica that applies each of them at once.
    committed: Vec<Rc<Entry>>,
    rooms: Rooms,
    watch: Watch,
}

impl Cluster {
    pub fn new(rule: Rule, seed: u64) -> Cluster {
        let mut random = StdRng::seed_from_u64(seed);
        // The first fencing floor is set, so that rooms can be granted.
        let rooms = Rooms::restore(Counters { last_fencing_token: 1, ..Counters::default() }, []);
        let nodes = std::array::from_fn(|_| Node {
            clock: SimulatedClock::start(&mut random, 0),
            wall_offset_ms: random.random_range(20 * DAY..21 * DAY),
            raft_term: 0,
            reign: None,
            led: 0,
            acknowledged: [0; NODES],
            log: Vec::new(),
            committed: 0,
            applied: 0,
            rooms: rooms.clone(),
            stamper: Stamper::new(rule),
            snapshot: (0, rooms.clone()),
        });
        let (watch, delayed, committed) = (Watch::new(), Vec::new(), Vec::new());
        let (now, raft_term, cut_off, secrets) = (0, 0, None, 0);
        Cluster { rule, random, now, nodes, raft_term, cut_off, delayed, secrets, committed, rooms, watch }
    }

    /// Gives the holders worse clocks than their leases allow for.
    pub fn slow_holders_by(&mut self, error: f64) {
        self.watch.holder_clock_error = error;
    }

    pub fn coverage(&self) -> Coverage {
        self.watch.coverage
    }

    pub fn committed_stamps(&self) -> Vec<Stamp> {
        self.committed.iter().filter_map(|entry| Some(entry.proposal.as_ref()?.command.stamp())).collect()
    }

    /// Plays random events, faults among them.
    pub fn disturb(&mut self) -> Result<(), Violation> {
        self.elect(0);
        for _ in 0..STEPS {
            self.now += self.gap();
            let node = self.actor();
            let other = (node + self.random.random_range(1..NODES)) % NODES;
            if self.is_stalled(node) {
                continue;
            }
            match self.random.random_range(0..100) {
                0..28 => self.propose(node),
                28..30 => self.race(node)?,
                30..38 => self.append_delayed(node),
                38..54 => self.replicate(node, other)?,
                54..62 => self.apply_some(node),
                62..63 => self.cut_off(node),
                63..64 => self.cut_off = None,
                64..84 => self.round(node)?,
                84..88 => self.elect(other),
                88..90 => self.elect(node),
                90..91 => self.restart(node),
                91..92 => self.install_snapshot(node, other)?,
                92..94 => self.nodes[node].snapshot = (self.nodes[node].applied, self.nodes[node].rooms.clone()),
                94..95 => self.stall(node),
                95..96 => self.step_wall_clock(node),
                _ => self.look(node),
            }
        }
        Ok(())
    }

    /// Plays a time without faults: one raft leader, and a steady load. Commits take most of the time between two
    /// entries. Log time must keep up with real time.
    pub fn calm(&mut self) -> Result<(), Violation> {
        const ENTRIES: u64 = 50;
        const COMMIT_TAKES: u64 = 30 * MILLISECOND;
        const PAUSE: u64 = 10 * MILLISECOND;
        self.cut_off = None;
        self.now = self.nodes.iter().map(|node| node.clock.stalled_until).fold(self.now, Moment::max) + SECOND;
        let position = |node: &usize| (self.nodes[*node].last_raft_term(), self.nodes[*node].log.len());
        let raft_leader = (0..NODES).max_by_key(position).expect("there are nodes");
        self.elect(raft_leader);
        self.now += SECOND;
        self.round(raft_leader)?;
        let (mut began, mut log_time_began) = (self.now, LogTime(0));
        for number in 0..=ENTRIES {
            if let Some(stamp) = self.stamp(raft_leader) {
                self.append(raft_leader, Proposal { command: Command::Tick { stamp }, stamped_at: self.now });
            }
            if number == 1 {
                (began, log_time_began) = (self.now, self.rooms.log_time());
            }
            self.now += COMMIT_TAKES;
            self.round(raft_leader)?;
            self.now += PAUSE;
        }
        for node in 0..NODES {
            self.apply(node, usize::MAX);
            assert!(self.nodes[node].rooms == self.rooms, "two replicas differ at the same position");
        }
        let elapsed_ms = (self.now - began) as f64 / MILLISECOND as f64;
        let share = self.rooms.log_time().since(log_time_began).as_millis() as f64 / elapsed_ms;
        if share < 0.9 { Err(Violation::Crawl(share)) } else { Ok(()) }
    }

    /// Mostly a node that believes that it is raft leader. There may be several.
    fn actor(&mut self) -> usize {
        let raft_leaders: Vec<_> = (0..NODES).filter(|node| self.nodes[*node].reign.is_some()).collect();
        if raft_leaders.is_empty() || self.random.random_bool(0.2) {
            self.random.random_range(0..NODES)
        } else {
            raft_leaders[self.random.random_range(0..raft_leaders.len())]
        }
    }

    /// The time to the next event: mostly as short as in a busy cluster, sometimes long enough for a lease to expire.
    fn gap(&mut self) -> u64 {
        match self.random.random_range(0..100) {
            0..55 => self.random.random_range(0..5 * MILLISECOND),
            55..80 => self.random.random_range(0..200 * MILLISECOND),
            80..95 => self.random.random_range(0..6 * SECOND),
            95..99 => self.random.random_range(0..MINUTE),
            _ => self.random.random_range(0..10 * MINUTE),
        }
    }

    fn is_stalled(&self, node: usize) -> bool {
        self.nodes[node].clock.stalled_until > self.now
    }

    /// Whether a message from one node reaches the other. The sender acts, so it is not stalled.
    fn are_in_touch(&self, from: usize, to: usize) -> bool {
        !self.is_stalled(to) && self.cut_off != Some(from) && self.cut_off != Some(to)
    }

    fn clock(&mut self, node: usize) -> ClockReading {
        self.nodes[node].clock.read(self.now)
    }

    fn wall_time(&self, node: usize) -> WallTime {
        let wall_ms = (self.now / MILLISECOND) as i64 + self.nodes[node].wall_offset_ms;
        WallTime(wall_ms.max(0) as u64)
    }

    // Events that clients cause.

    fn stamp(&mut self, node: usize) -> Option<Stamp> {
        let (now, wall_time) = (self.clock(node), self.wall_time(node));
        let reign = self.nodes[node].reign?;
        self.nodes[node].stamper.stamp(reign, now, wall_time)
    }

    fn room(&mut self) -> RoomId {
        let name = ["room-one", "room-two"][self.random.random_range(0..2)];
        RoomId::new(name).expect("a valid id")
    }

    fn propose(&mut self, node: usize) {
        let Some(stamp) = self.stamp(node) else { return };
        let command = self.command(node, stamp);
        let proposal = Proposal { command, stamped_at: self.now };
        if self.random.random_bool(0.7) {
            self.append(node, proposal);
        } else {
            self.delayed.push(proposal);
        }
    }

    /// A rival campaigns in the first moments in which it can win.
    fn race(&mut self, node: usize) -> Result<(), Violation> {
        let Some(stamp) = self.stamp(node) else { return Ok(()) };
        let first = self.nodes[node].rooms.leases().min_by_key(|(_, lease)| lease.deadline);
        let Some((room, deadline)) = first.map(|(room, lease)| (room.clone(), lease.deadline)) else { return Ok(()) };
        let wait_ms = deadline.since(stamp.log_time).as_millis() as u64;
        self.now += wait_ms * MILLISECOND + self.random.random_range(0..2 * MILLISECOND);
        if let Some(stamp) = self.stamp(node) {
            let command = self.campaign(room, stamp);
            self.append(node, Proposal { command, stamped_at: self.now });
        }
        self.round(node)
    }

    fn command(&mut self, node: usize, stamp: Stamp) -> Command {
        // As a raft leader does at the start of its reign. Without it no campaign of the reign would win.
        if self.nodes[node].rooms.counters().floor_raft_term != stamp.raft_term {
            return Command::RaiseFencingFloor { stamp, floor: FencingToken(1) };
        }
        match self.random.random_range(0..10) {
            0..5 => return Command::Tick { stamp },
            5 => return Command::AnchorWallClock { stamp, wall_time: self.wall_time(node) },
            _ => {}
        }
        let room = self.room();
        match self.nodes[node].rooms.lease(&room).map(|lease| (lease.is_due(stamp.log_time), lease.secret_hash)) {
            Some((false, secret_hash)) if self.random.random_bool(0.15) => {
                Command::Resign { stamp, resign: Resign { room, secret_hash } }
            }
            Some((false, secret_hash)) if self.random.random_bool(0.5) => {
                let renew = Renew { room, secret_hash, lease_duration: None, metadata: None };
                Command::Renew { stamp, renew }
            }
            _ => self.campaign(room, stamp),
        }
    }

    fn campaign(&mut self, room: RoomId, stamp: Stamp) -> Command {
        self.secrets += 1;
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&self.secrets.to_be_bytes());
        let seconds = if self.random.random_bool(0.8) { 5 } else { 60 };
        let campaign = Campaign {
            room,
            contender: ContenderId::new("somebody").expect("a valid id"),
            metadata: None,
            lease_duration: LeaseDuration::from_secs(seconds).expect("within the limits"),
            secret_hash: SecretHash(secret),
            nonce: Nonce([0; 16]),
        };
        Command::Campaign { stamp, campaign, live_leases_max: LIVE_LEASES_MAX }
    }

    /// Appends a command to this node's log that was stamped earlier, at this node or at another.
    fn append_delayed(&mut self, node: usize) {
        if self.nodes[node].reign.is_some() && !self.delayed.is_empty() {
            let newest = self.delayed.len() - 1;
            let index = if self.random.random_bool(0.7) { newest } else { self.random.random_range(0..=newest) };
            let proposal = self.delayed.remove(index);
            self.append(node, proposal);
        }
    }

    /// A view costs no log entry. If the holder sees its own lease in it, it learns how long the lease is still valid.
    fn look(&mut self, node: usize) {
        let is_raft_leader = self.nodes[node].reign == Some(self.raft_term);
        // The read barrier guarantees that the node has applied everything that is committed.
        if !is_raft_leader || self.nodes[node].applied < self.committed.len() {
            return;
        }
        let Some(stamp) = self.stamp(node) else { return };
        let room = self.room();
        let view = self.nodes[node].rooms.view_at(&room, stamp.log_time);
        if view.lease.as_ref().is_some_and(|lease| !lease.is_due(view.log_time)) {
            self.watch.looked(&room, self.now, &view);
        }
    }

    // The state machine drives the code under test in this way.

    fn apply_some(&mut self, node: usize) {
        let entries = self.random.random_range(1..10);
        self.apply(node, entries);
    }

    fn apply(&mut self, node: usize, entries_max: usize) {
        let (now, rule) = (self.clock(node), self.rule);
        let one_by_one = self.random.random_bool(0.5);
        let node = &mut self.nodes[node];
        let upto = node.committed.min(node.applied.saturating_add(entries_max));
        while node.applied < upto {
            let entry = &node.log[node.applied];
            if let Some(proposal) = &entry.proposal {
                node.rooms.apply(entry.raft_term, &rule.command_to_apply(entry.raft_term, &proposal.command));
            }
            node.applied += 1;
            // The stamper is told after each entry, or once after the whole batch.
            if one_by_one || node.applied == upto {
                node.stamper.after_apply(entry.raft_term, node.rooms.log_time(), now);
            }
        }
    }

    // Faults.

    fn restart(&mut self, node: usize) {
        self.watch.coverage.restarts += 1;
        let down_for = self.random.random_range(0..20 * SECOND);
        let back_at = self.now + down_for;
        let rule = self.rule;
        let node = &mut self.nodes[node];
        node.clock = node.clock.start_anew(&mut self.random, back_at);
        node.reign = None;
        (node.applied, node.rooms) = node.snapshot.clone();
        node.committed = node.applied;
        node.stamper = Stamper::new(rule);
        let now = node.clock.read(back_at);
        node.stamper.after_restore(node.rooms.log_time(), now);
    }

    fn install_snapshot(&mut self, from: usize, to: usize) -> Result<(), Violation> {
        self.send(from, to, self.nodes[from].log.len())?;
        let follows = self.nodes[from].reign == Some(self.nodes[to].raft_term);
        if follows && self.are_in_touch(from, to) && self.nodes[from].applied > self.nodes[to].applied {
            self.watch.coverage.snapshots_installed += 1;
            let (applied, rooms) = (self.nodes[from].applied, self.nodes[from].rooms.clone());
            let now = self.clock(to);
            let node = &mut self.nodes[to];
            node.committed = node.committed.max(applied);
            node.stamper.after_restore(rooms.log_time(), now);
            (node.applied, node.rooms) = (applied, rooms);
        }
        Ok(())
    }

    fn stall(&mut self, node: usize) {
        self.watch.coverage.stalls += 1;
        self.clock(node);
        let stall = self.random.random_range(50 * MILLISECOND..MINUTE);
        self.nodes[node].clock.stalled_until = self.now + stall;
    }

    fn cut_off(&mut self, node: usize) {
        self.watch.coverage.cuts += 1;
        self.cut_off = Some(node);
    }

    fn step_wall_clock(&mut self, node: usize) {
        self.watch.coverage.wall_steps += 1;
        self.nodes[node].wall_offset_ms += self.random.random_range(-3 * DAY..3 * DAY);
    }
}
