//! What is done to the nodes, by a schedule that a seed draws.

mod cables;
mod disks;
mod processes;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::history::{Fault, Moment, SECOND, now};
use crate::lab::Lab;

/// How long everything may take to serve again once a fault is undone.
const HEALING_MAX: Moment = 30 * SECOND;

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
}

impl Scenario {
    pub const ALL: [Scenario; 7] =
        [Self::Kill, Self::Pause, Self::Restart, Self::Mix, Self::Cut, Self::Power, Self::Full];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Restart => "restart",
            Self::Mix => "mix",
            Self::Cut => "cut",
            Self::Power => "power",
            Self::Full => "full",
        }
    }

    pub fn needs_disks(self) -> bool {
        matches!(self, Self::Power | Self::Full)
    }

    pub fn needs_networks(self) -> bool {
        self == Self::Cut
    }
}

/// Does one thing to the nodes, undoes it, and waits until they serve again.
pub async fn strike(lab: &mut Lab, scenario: Scenario, random: &mut StdRng) -> Fault {
    let from = now();
    let leader = lab.raft_leader().await.unwrap_or(0);
    let follower = (leader + random.random_range(1..=2)) % 3;
    let mut fault = match scenario {
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
        Scenario::Power => disks::power(lab, leader, follower, random).await,
        Scenario::Full => disks::full(lab, leader, follower, random).await,
    };
    fault.from = from;
    fault.healed = lab.healed(HEALING_MAX).await;
    fault
}

fn fault(name: impl Into<String>, cut: Moment, without_quorum: Vec<usize>) -> Fault {
    Fault { name: name.into(), from: cut, undone: now(), healed: None, without_quorum, cut }
}
