//! A caller's request, before it is a command.

use serde::{Deserialize, Serialize};

use super::ids::{ContenderId, Metadata, Nonce, RoomId, SecretHash};
use super::log_time::LeaseDuration;

/// A contender asks for a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// The room.
    pub room: RoomId,
    /// The contender.
    pub contender: ContenderId,
    /// A note that everybody sees beside the contender's name.
    pub metadata: Option<Metadata>,
    /// How long the lease lasts without a renewal.
    pub lease_duration: LeaseDuration,
    /// Hash of the secret that the caller gets if it wins.
    pub secret_hash: SecretHash,
    /// The caller's key and this nonce give the secret.
    pub nonce: Nonce,
}

/// A holder extends its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// The room.
    pub room: RoomId,
    /// Hash of the secret that the caller showed.
    pub secret_hash: SecretHash,
    /// A new duration. Without it the lease keeps its own.
    pub lease_duration: Option<LeaseDuration>,
    /// New metadata. Without it the lease keeps its own.
    pub metadata: Option<Metadata>,
}

/// A holder gives its room up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resign {
    /// The room.
    pub room: RoomId,
    /// Hash of the secret that the caller showed.
    pub secret_hash: SecretHash,
}

/// A caller's request to change a room. It becomes a [`Command`](super::Command) once the raft leader has stamped it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Grant the room.
    Campaign(Campaign),
    /// Extend the lease.
    Renew(Renew),
    /// End the lease.
    Resign(Resign),
}

impl Change {
    /// The room that would change.
    pub fn room(&self) -> &RoomId {
        match self {
            Change::Campaign(campaign) => &campaign.room,
            Change::Renew(renew) => &renew.room,
            Change::Resign(resign) => &resign.room,
        }
    }
}

/// A caller's request on its way to the raft leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// Change a room.
    Change(Change),
    /// Show a room.
    View(RoomId),
}
