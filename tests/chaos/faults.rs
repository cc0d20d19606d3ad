//! What is done to the nodes, by a schedule that a seed draws.

mod cables;
mod clocks;
mod disks;
mod processes;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::lab::{Gear, Lab};
use crate::outside::now;
use crate::workload::history::{Fault, MILLI, Moment, SECOND};

/// How long everything may take to serve again once a fault is undone.
const HEALING_MAX: Moment = 30 * SECOND;
/// By when others have certainly elected a raft leader in place of one that is gone, on a busy machine.
const ELECTION_MAX: Moment = 3_500 * MILLI;
/// How long nobody may be served while two nodes reach each other: a raft election, and the patience of clients, up to
/// 2.5 s, with a node that doesn't answer.
const OUTAGE_MAX: Moment = 6 * SECOND;

/// A kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// kill -9 of the raft leader, a follower, two nodes, all.
    Kill,
    /// SIGSTOP of the raft leader or a follower, for 1, 5 or 30 s.
    Pause,
    /// SIGTERM and start, one node after the other.
    Restart,
    /// The three above.
    Mix,
    /// Cables: a node cut off, two nodes apart, one way only.
    Cut,
    /// Power: one node, two, all.
    Power,
    /// A disk that fills up.
    Full,
    /// Disks on which each block takes 300 ms or 3 s.
    Slow,
    /// A disk that fails and stays so: the raft leader's, a follower's, two.
    Dead,
    /// Bad ways between nodes: 5, 50 or 300 ms longer, stalled, half-open, a trickle.
    Delay,
    /// Wall clocks that jump by hours and days.
    Clock,
}

impl Scenario {
    pub const ALL: [Scenario; 11] = [
        Self::Kill,
        Self::Pause,
        Self::Restart,
        Self::Mix,
        Self::Cut,
        Self::Power,
        Self::Full,
        Self::Slow,
        Self::Dead,
        Self::Delay,
        Self::Clock,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Restart => "restart",
            Self::Mix => "mix",
            Self::Cut => "cut",
            Self::Power => "power",
            Self::Full => "full",
            Self::Slow => "slow",
            Self::Dead => "dead",
            Self::Delay => "delay",
            Self::Clock => "clock",
        }
    }

    pub fn gear(self) -> Gear {
        match self {
            Self::Cut => Gear { networks: true, ..Gear::default() },
            Self::Power | Self::Full | Self::Dead => Gear { disks: true, ..Gear::default() },
            Self::Slow => Gear { disks: true, brakes: true, ..Gear::default() },
            Self::Delay => Gear { proxies: true, ..Gear::default() },
            Self::Clock => Gear { wall_clocks: true, ..Gear::default() },
            Self::Kill | Self::Pause | Self::Restart | Self::Mix => Gear::default(),
        }
    }
}

/// Something that was done to the nodes, and what must have come of it. A run whose faults struck nothing proves
/// nothing.
pub struct Strike {
    pub fault: Fault,
    /// Whether the nodes cannot have gone on without another raft election.
    pub elects: bool,
    /// How it is known that it struck nothing, if so.
    pub missed: Option<String>,
    /// How long nobody may be served while it lasts: long enough for a raft election where it leaves two nodes that
    /// reach each other, any time where it doesn't.
    pub outage_max: Moment,
    /// Whether the checker is told of it, and so allows for what it may cost.
    pub excuse: bool,
}

impl Strike {
    /// One that began with `cut` and is about to be undone.
    fn new(name: impl Into<String>, cut: Moment, without_quorum: Vec<usize>) -> Strike {
        let fault = Fault { name: name.into(), from: cut, undone: now(), healed: None, without_quorum, cut };
        Strike { fault, elects: false, missed: None, outage_max: Moment::MAX, excuse: true }
    }

    fn elects(self, elects: bool) -> Strike {
        Strike { elects, ..self }
    }

    fn leaves_a_quorum(self, quorum: bool) -> Strike {
        Strike { outage_max: if quorum { OUTAGE_MAX } else { Moment::MAX }, ..self }
    }

    fn missed(self, missed: Option<String>) -> Strike {
        Strike { missed, ..self }
    }
}

/// Does one thing to the nodes, undoes it, and waits until they serve again.
pub async fn strike(lab: &mut Lab, scenario: Scenario, random: &mut StdRng) -> Strike {
    let from = now();
    let Some(leader) = lab.raft_leader(HEALING_MAX).await else {
        let why = format!("no raft leader within {} s", HEALING_MAX / SECOND);
        return Strike::new("one that needs a raft leader", from, vec![]).missed(Some(why));
    };
    let follower = (leader + random.random_range(1..=2)) % 3;
    let mut strike = match scenario {
        Scenario::Kill => processes::kill(lab, leader, follower, random).await,
        Scenario::Pause => {
            // Long ones are rare, or short runs would be nothing else.
            let seconds = [1, 5, 1, 5, 1, 5, 1, 5, 1, 30][random.random_range(0..10)];
            processes::pause(lab, leader, follower, seconds, random).await
        }
        Scenario::Restart => processes::restart(lab).await,
        Scenario::Mix => match random.random_range(0..8) {
            0..4 => processes::kill(lab, leader, follower, random).await,
            4..7 => processes::pause(lab, leader, follower, [1, 5][random.random_range(0..2)], random).await,
            _ => processes::restart(lab).await,
        },
        Scenario::Cut => cables::cut(lab, leader, follower, random).await,
        Scenario::Delay => cables::delay(lab, leader, follower, random).await,
        Scenario::Power => disks::power(lab, leader, follower, random).await,
        Scenario::Full => disks::full(lab, leader, follower, random).await,
        Scenario::Slow => disks::slow(lab, leader, follower, random).await,
        Scenario::Clock => clocks::jump(lab, leader, follower, random).await,
        Scenario::Dead => disks::dead(lab, leader, follower, random).await,
    };
    strike.fault.from = from;
    strike.fault.healed = lab.healed(HEALING_MAX).await;
    strike
}
