//! The kinds of runs.

use crate::lab::Gear;

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
