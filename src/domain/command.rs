//! What can be asked of the rooms, and what can be answered.

use serde::{Deserialize, Serialize};

use super::{ContenderId, FencingToken, LeaseDuration, Metadata, Nonce, RoomId, RoomView, SecretHash, Stamp, WallTime};

/// A request for a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// The room.
    pub room: RoomId,
    /// Who wants it.
    pub contender: ContenderId,
    /// What everybody shall see beside the name.
    pub metadata: Option<Metadata>,
    /// How long the lease shall last.
    pub lease_duration: LeaseDuration,
    /// Hash of the secret that the caller gets if it wins.
    pub secret_hash: SecretHash,
    /// What that secret was made from, beside the caller's key.
    pub nonce: Nonce,
}

/// A holder's wish to keep its room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// The room.
    pub room: RoomId,
    /// Hash of the secret that the caller showed.
    pub secret_hash: SecretHash,
    /// A new duration; without it the lease keeps its own.
    pub lease_duration: Option<LeaseDuration>,
    /// New metadata; without it the lease keeps its own.
    pub metadata: Option<Metadata>,
}

/// A holder's wish to give its room up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resign {
    /// The room.
    pub room: RoomId,
    /// Hash of the secret that the caller showed.
    pub secret_hash: SecretHash,
}

/// What a caller can ask, on its way to the raft leader: not stamped yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Give me the room.
    Campaign(Campaign),
    /// Let me keep it.
    Renew(Renew),
    /// Take it back.
    Resign(Resign),
    /// Tell me about it.
    View(RoomId),
}

impl Ask {
    /// The room that this is about.
    pub fn room(&self) -> &RoomId {
        match self {
            Ask::Campaign(campaign) => &campaign.room,
            Ask::Renew(renew) => &renew.room,
            Ask::Resign(resign) => &resign.room,
            Ask::View(room) => room,
        }
    }
}

/// A question that may change something. It lacks only its stamp to be a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// Grant the room.
    Campaign(Campaign),
    /// Extend the lease.
    Renew(Renew),
    /// End it.
    Resign(Resign),
}

impl Proposal {
    /// The command, as of the stamp, with the limit that its raft leader judges by.
    pub fn stamped(self, stamp: Stamp, live_leases_max: u64) -> Command {
        match self {
            Proposal::Campaign(campaign) => Command::Campaign { stamp, campaign, live_leases_max },
            Proposal::Renew(renew) => Command::Renew { stamp, renew },
            Proposal::Resign(resign) => Command::Resign { stamp, resign },
        }
    }
}

/// What is replicated: one entry of the raft log. The format is fixed by `codec` and golden bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Grants a room, unless somebody holds it at the stamp.
    Campaign {
        /// When, by the log.
        stamp: Stamp,
        /// The request.
        campaign: Campaign,
        /// How many leases may live in all. It travels with the command so that nodes with different settings
        /// still decide alike.
        live_leases_max: u64,
    },
    /// Moves a lease's deadline on.
    Renew {
        /// When, by the log.
        stamp: Stamp,
        /// The request.
        renew: Renew,
    },
    /// Ends a lease at its holder's wish.
    Resign {
        /// When, by the log.
        stamp: Stamp,
        /// The request.
        resign: Resign,
    },
    /// Moves log time on, and ends what is due.
    Tick {
        /// When, by the log.
        stamp: Stamp,
    },
    /// Ties log time to a wall clock, for display.
    AnchorWallClock {
        /// When, by the log.
        stamp: Stamp,
        /// What the raft leader's wall clock said at the stamp.
        wall_time: WallTime,
    },
    /// Makes every later grant's fencing token higher than this.
    RaiseFencingFloor {
        /// When, by the log.
        stamp: Stamp,
        /// The floor.
        floor: FencingToken,
    },
}

impl Command {
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

    /// The bytes of all text in it: the part of its size that a caller chooses.
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

/// The answer to a command or a question. Every node computes the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The contender holds the room now.
    Granted(RoomView),
    /// Somebody holds it: it may be the same contender, by an earlier request.
    Occupied(RoomView),
    /// The lease lasts longer now.
    Renewed(RoomView),
    /// The room is vacant; it was held under this token.
    Resigned(FencingToken),
    /// How the room stands.
    Viewed(RoomView),
    /// Log time moved on; `more_due` if leases are left that should end as well.
    Ticked {
        /// Whether another tick is needed at once.
        more_due: bool,
    },
    /// The wall anchor or the fencing floor is taken over.
    Noted,
    /// The rules say no.
    Refused(Refusal),
}

/// Why the rules say no. It is as much a fact of the log as a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The secret is not that of the room's lease, or there is no lease.
    NotHolder,
    /// As many leases live as may.
    CapacityReached,
    /// The command was stamped in another raft term than it was appended in. It must be stamped anew.
    StaleStamp,
    /// No fencing floor has been set yet, so a grant could repeat a token of a lost cluster.
    NotReady,
}

/// What the raft leader finds when it looks at a request before proposing anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It would change something: this must go through the log.
    Changes(Proposal),
    /// It would change nothing, and this is the answer, if a read barrier confirms what it is based on.
    Answer(Outcome),
}
