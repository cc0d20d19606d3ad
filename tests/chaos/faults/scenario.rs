//! The kinds of runs, each with one kind of fault.

use crate::lab::Gear;

/// A kind of run, by the name that `scripts/chaos --scenario` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// kill -9 of the raft leader, of a raft follower, of two nodes or of all.
    Kill,
    /// SIGSTOP of the raft leader or of a raft follower, for 1, 5 or 30 s.
    Pause,
    /// SIGTERM and a new start, one node after the other.
    Restart,
    /// The three above.
    Mix,
    /// Cut cables: of one node, between two nodes, or in one direction only.
    Cut,
    /// Power cuts of one node, of two or of all.
    Power,
    /// A disk that fills up.
    Full,
    /// Disks on which each block takes 300 ms or 3 s.
    Slow,
    /// Disks that fail for good: the raft leader's, a raft follower's, or two.
    Dead,
    /// Bad links between nodes: 5, 50 or 300 ms of delay, stalled, half-open, or very low bandwidth.
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

    /// The name on the command line and in the table.
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

    /// What the nodes need for these faults.
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
