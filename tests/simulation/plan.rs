//! What a seed decides: how the nodes are configured, how their machines behave, and which faults are injected.

use std::time::Duration;

use quorate::consensus::ConsensusSettings;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::invariants::RATE_PPM_MAX;
use crate::workload::crowd::Habits;
use crate::workload::history::{MILLI, Moment, SECOND};

/// Everything that a run is given beside its seed.
#[derive(Debug, Clone)]
pub struct Plan {
    pub tuning: ConsensusSettings,
    /// How much faster than real time the machines' clocks run, in millionths.
    pub rates_ppm: [i64; 3],
    pub latency_max: Duration,
    /// How many rooms have contenders. With few rooms it is often the case that no lease lasts.
    pub rooms: usize,
    pub habits: Habits,
    /// How many times faults are injected. Each time the nodes have to heal before the next.
    pub episodes: usize,
    /// The faults of the first episode, if they aren't drawn at random.
    pub script: Option<Vec<Act>>,
    /// A node that is taken away for good at the end, if there is one. The others must go on without it.
    pub gone_at_last: Option<usize>,
}

impl Plan {
    /// Draws a plan at random.
    pub fn draw(random: &mut StdRng) -> Plan {
        let raft_election_timeout = Duration::from_millis(random.random_range(200..=800));
        let tuning = ConsensusSettings {
            heartbeat: raft_election_timeout / random.random_range(4..=8),
            raft_election_timeout,
            snapshot_every: *[15, 40, 200].choose(random).expect("not empty"),
            // Small numbers, so that snapshots are sent. Operators can't set less than 1,000.
            log_entries_kept: *[10, 40, 1_000].choose(random).expect("not empty"),
        };
        // A slow clock makes leases last longer, which is allowed. A fast one must stay within the guard of a lease.
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

/// One fault of a script: when it is injected, how long it lasts, and what it is.
#[derive(Debug, Clone)]
pub struct Act {
    /// The time from the act before to this one.
    pub pause: Moment,
    /// How long it lasts until it is undone.
    pub lasts: Moment,
    /// What happens. `None` means that it is drawn at random when its time has come.
    pub event: Option<Event>,
}

impl Act {
    /// This event, together with the act before it.
    pub fn at_once(event: Event) -> Act {
        Act::after(0, event)
    }

    /// This event, so long after the act before it.
    pub fn after(pause: Moment, event: Event) -> Act {
        Act { pause, lasts: 0, event: Some(event) }
    }

    /// The same act, undone after this time.
    pub fn lasting(self, lasts: Moment) -> Act {
        Act { lasts, ..self }
    }
}

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Processes end at once, and are started again after `down`. With a power cut, their disks lose what was not
    /// flushed.
    Kill { places: Vec<usize>, power_cut: bool, down: Moment },
    /// A process is told to stop as with SIGTERM, and is started again.
    Restart { place: usize },
    /// A node is cut off from both others.
    Isolate { place: usize },
    /// Two nodes are cut off from each other.
    Cut { one: usize, other: usize },
    /// Messages from one node to another are lost. The other direction works.
    CutOneWay { from: usize, to: usize },
    /// Messages between two nodes wait, and arrive when this is undone.
    Hold { one: usize, other: usize },
    /// Messages between two nodes take up to `latency`.
    Slow { one: usize, other: usize, latency: Moment },
    /// A machine's clock stands still, and messages to and from it wait, as if the machine were suspended.
    Suspend { place: usize },
    /// Each flush of the log takes this long.
    Stall { place: usize, flush: Moment },
    /// Every flush fails.
    FailingDisk { place: usize },
    /// Wall clocks jump by this many milliseconds.
    WallJump { places: Vec<usize>, by_ms: i64 },
}

impl Event {
    /// The kind under which it is counted.
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

    /// Whether it affects messages between nodes.
    pub fn affects_the_network(&self) -> bool {
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

    /// Draws a fault at random.
    pub fn draw(random: &mut StdRng, raft_leader: Option<usize>) -> Event {
        // The raft leader is chosen more often, because most can go wrong there.
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
                    // The node is back before the others notice.
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
