//! What a seed stands for: how the nodes are set up, how their machines behave, and what is done to them.

use std::time::Duration;

use quorate::config::RaftTuning;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::invariants::RATE_PPM_MAX;
use crate::workload::crowd::Habits;
use crate::workload::history::{MILLI, Moment, SECOND};

/// How the nodes and their machines are.
#[derive(Debug, Clone)]
pub struct Plan {
    pub tuning: RaftTuning,
    /// How much faster than real time the machines' clocks run, in millionths.
    pub rates_ppm: [i64; 3],
    pub latency_max: Duration,
    /// How many rooms are contended for. Where there are few, the last grant of all is often over.
    pub rooms: usize,
    pub habits: Habits,
    /// How many times faults strike, each followed by a time in which all heals.
    pub episodes: usize,
    /// What is done the first time, if it isn't left to chance.
    pub script: Option<Vec<Act>>,
    /// Who is taken away for good at the end, if anybody is: the others must go on alone.
    pub gone_at_last: Option<usize>,
}

impl Plan {
    pub fn draw(random: &mut StdRng) -> Plan {
        let raft_election_timeout = Duration::from_millis(random.random_range(200..=800));
        let tuning = RaftTuning {
            heartbeat: raft_election_timeout / random.random_range(4..=8),
            raft_election_timeout,
            snapshot_every: *[15, 40, 200].choose(random).expect("not empty"),
            // Small numbers, so that snapshots are sent. The least that may be set is 1,000.
            log_entries_kept: *[10, 40, 1_000].choose(random).expect("not empty"),
        };
        // A slow clock makes leases longer, which is allowed; a fast one is allowed what the guard covers.
        let mut rate = || {
            if random.random_bool(0.3) {
                random.random_range(-100_000..0)
            } else {
                random.random_range(-RATE_PPM_MAX..=RATE_PPM_MAX)
            }
        };
        let rates_ppm = [rate(), rate(), rate()];
        let wait_seconds = *[1, 2, 5, 10].choose(random).expect("not empty");
        let waits_seconds = match random.random_range(0..4) {
            0 => vec![0],
            1 => vec![0, wait_seconds],
            _ => vec![0, wait_seconds, wait_seconds],
        };
        Plan {
            tuning,
            rates_ppm,
            rooms: random.random_range(1..=4),
            habits: Habits { waits_seconds, rest_max: *[SECOND, 5 * SECOND].choose(random).expect("not empty") },
            latency_max: Duration::from_millis(*[2, 5, 20].choose(random).expect("not empty")),
            script: None,
            episodes: random.random_range(2..=5),
            gone_at_last: random.random_bool(0.3).then(|| random.random_range(0..3)),
        }
    }
}

/// One thing that is done: when, for how long, and what, if it isn't left to chance.
#[derive(Debug, Clone)]
pub struct Act {
    /// After the one before.
    pub pause: Moment,
    pub lasts: Moment,
    pub event: Option<Event>,
}

/// Something that is done to nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Processes end at once and are started again after a while; with a power cut, the disks lose what was not flushed.
    Kill { places: Vec<usize>, power_cut: bool, down: Moment },
    /// A process is told to stop in good order, and is started again.
    Restart { place: usize },
    /// A node reaches no other, nor they it.
    Isolate { place: usize },
    /// Nothing gets between two nodes.
    Cut { one: usize, other: usize },
    /// Nothing gets from one node to another; the other direction works.
    CutOneWay { from: usize, to: usize },
    /// What is sent between two nodes waits, and arrives at the end.
    Hold { one: usize, other: usize },
    /// Messages between two nodes take up to so long.
    Slow { one: usize, other: usize, latency: Moment },
    /// A machine's clock stands still, and it is cut off meanwhile.
    Suspend { place: usize },
    /// Each flush takes so long.
    Stall { place: usize, flush: Moment },
    /// No flush works.
    FailingDisk { place: usize },
    /// Wall clocks jump by so many milliseconds.
    WallJump { places: Vec<usize>, by_ms: i64 },
}

impl Event {
    /// The kind, as it is counted.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::Kill { power_cut: false, .. } => "kill",
            Event::Kill { power_cut: true, .. } => "power cut",
            Event::Restart { .. } => "restart",
            Event::Isolate { .. } => "isolate",
            Event::Cut { .. } => "cut",
            Event::CutOneWay { .. } => "cut one way",
            Event::Hold { .. } => "hold",
            Event::Slow { .. } => "slow",
            Event::Suspend { .. } => "suspend",
            Event::Stall { .. } | Event::FailingDisk { .. } => "disk",
            Event::WallJump { .. } => "wall clock",
        }
    }

    /// Whether it is about what nodes hear of each other.
    pub fn is_of_the_network(&self) -> bool {
        matches!(
            self,
            Event::Isolate { .. }
                | Event::Cut { .. }
                | Event::CutOneWay { .. }
                | Event::Hold { .. }
                | Event::Slow { .. }
                | Event::Suspend { .. }
        )
    }

    pub fn draw(random: &mut StdRng, raft_leader: Option<usize>) -> Event {
        // The raft leader is where most can go wrong.
        let place = match raft_leader {
            Some(raft_leader) if random.random_bool(0.5) => raft_leader,
            _ => random.random_range(0..3),
        };
        let other = (place + random.random_range(1..3)) % 3;
        match random.random_range(0..22) {
            0..6 => {
                let places = match random.random_range(0..4) {
                    0 => vec![0, 1, 2],
                    1 => vec![place, other],
                    _ => vec![place],
                };
                let down = match random.random_range(0..3) {
                    // Back before anybody misses it.
                    0 => random.random_range(MILLI..50 * MILLI),
                    1 => random.random_range(50 * MILLI..2 * SECOND),
                    _ => random.random_range(2 * SECOND..10 * SECOND),
                };
                Event::Kill { places, power_cut: random.random_bool(0.5), down }
            }
            6 => Event::Restart { place },
            7..10 => Event::Isolate { place },
            10 => Event::Cut { one: place, other },
            11..14 => Event::CutOneWay { from: place, to: other },
            14 => Event::Hold { one: place, other },
            15 => Event::Slow { one: place, other, latency: random.random_range(10..400) * MILLI },
            16..18 => Event::Suspend { place },
            18 => Event::Stall { place, flush: random.random_range(20..1_500) * MILLI },
            19 => Event::FailingDisk { place },
            _ => {
                const DAY_MS: i64 = 86_400_000;
                let places = if random.random_bool(0.5) { vec![place] } else { vec![0, 1, 2] };
                Event::WallJump { places, by_ms: random.random_range(-3 * DAY_MS..3 * DAY_MS) }
            }
        }
    }
}
