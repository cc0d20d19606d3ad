//! A client's request for a room.

use std::time::Duration;

use super::secrets::IdempotencyKey;
use crate::domain::{ContenderId, LeaseDuration, Metadata, RoomId};

/// A client's request for a room.
#[derive(Debug, Clone)]
pub struct CampaignRequest {
    /// The room.
    pub room: RoomId,
    /// The contender.
    pub contender: ContenderId,
    /// A note that everybody sees beside the contender's name.
    pub metadata: Option<Metadata>,
    /// How long the lease lasts without a renewal.
    pub lease_duration: LeaseDuration,
    /// How long to wait for an occupied room.
    pub wait: Duration,
    /// A secret of the caller. Two requests with the same key are one campaign.
    pub idempotency_key: Option<IdempotencyKey>,
}
