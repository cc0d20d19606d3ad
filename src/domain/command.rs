//! The commands of the raft log.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::change::{Campaign, Change, Renew, Resign};
use super::ids::{FencingToken, Metadata};
use super::log_time::{Stamp, WallTime};

/// The content of one entry of the raft log. Golden bytes in the tests fix its format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Grants a room, unless it is occupied at the stamp.
    Campaign {
        /// When, by the log.
        stamp: Stamp,
        /// The request.
        campaign: Campaign,
        /// How many leases may live in the whole cluster. It travels with the command, so that nodes with
        /// different settings still decide alike.
        live_leases_max: u64,
    },
    /// Moves a lease's deadline on.
    Renew {
        /// When, by the log.
        stamp: Stamp,
        /// The request.
        renew: Renew,
    },
    /// Ends a lease because its holder gives it up.
    Resign {
        /// When, by the log.
        stamp: Stamp,
        /// The request.
        resign: Resign,
    },
    /// Moves log time on, and ends the leases that are due.
    Tick {
        /// When, by the log.
        stamp: Stamp,
    },
    /// Ties log time to a wall clock, for display.
    AnchorWallClock {
        /// When, by the log.
        stamp: Stamp,
        /// The raft leader's wall clock at the stamp.
        wall_time: WallTime,
    },
    /// Makes the fencing token of every later grant higher than this.
    RaiseFencingFloor {
        /// When, by the log.
        stamp: Stamp,
        /// The floor.
        floor: FencingToken,
    },
}

impl Command {
    /// The command that carries out a change, with the raft leader's stamp and its limit on live leases.
    pub fn stamped(change: Change, stamp: Stamp, live_leases_max: u64) -> Command {
        match change {
            Change::Campaign(campaign) => Command::Campaign { stamp, campaign, live_leases_max },
            Change::Renew(renew) => Command::Renew { stamp, renew },
            Change::Resign(resign) => Command::Resign { stamp, resign },
        }
    }

    /// The stamp that the raft leader put in.
    pub fn stamp(&self) -> Stamp {
        match self {
            Command::Campaign { stamp, .. }
            | Command::Renew { stamp, .. }
            | Command::Resign { stamp, .. }
            | Command::Tick { stamp }
            | Command::AnchorWallClock { stamp, .. }
            | Command::RaiseFencingFloor { stamp, .. } => *stamp,
        }
    }

    /// The size of all text in the command. Only this part of a command's size is chosen by a caller.
    pub fn text_bytes(&self) -> usize {
        let metadata_bytes = |metadata: &Option<Metadata>| metadata.as_ref().map_or(0, |text| text.as_str().len());
        match self {
            Command::Campaign { campaign, .. } => {
                let names_bytes = campaign.room.as_str().len() + campaign.contender.as_str().len();
                names_bytes + metadata_bytes(&campaign.metadata)
            }
            Command::Renew { renew, .. } => renew.room.as_str().len() + metadata_bytes(&renew.metadata),
            Command::Resign { resign, .. } => resign.room.as_str().len(),
            Command::Tick { .. } | Command::AnchorWallClock { .. } | Command::RaiseFencingFloor { .. } => 0,
        }
    }
}

/// For trace events: the kind, and the room if there is one.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Campaign { campaign, .. } => write!(f, "campaign {}", campaign.room),
            Command::Renew { renew, .. } => write!(f, "renew {}", renew.room),
            Command::Resign { resign, .. } => write!(f, "resign {}", resign.room),
            Command::Tick { .. } => f.write_str("tick"),
            Command::AnchorWallClock { .. } => f.write_str("anchor"),
            Command::RaiseFencingFloor { .. } => f.write_str("floor"),
        }
    }
}
