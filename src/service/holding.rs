//! A caller's proof that it holds a room.

use std::time::Duration;

use super::secrets::LeaseSecret;
use crate::domain::RoomView;

/// A room that the caller holds.
#[derive(Debug, Clone)]
pub struct Holding {
    /// The room with the caller's lease.
    pub view: RoomView,
    /// The proof for renewals and the resignation.
    pub secret: LeaseSecret,
    /// How long the caller may act, counted from the moment before it sent its request.
    pub valid_for: Duration,
}

impl Holding {
    /// A lease that was granted, now or to an earlier request of the caller. The holder may use all of the remaining
    /// time, because the view's log time was read after the caller sent this request.
    pub fn granted(view: RoomView, secret: LeaseSecret) -> Self {
        let valid_for = view.lease.as_ref().map_or(Duration::ZERO, |lease| lease.valid_for(view.log_time));
        Self { view, secret, valid_for }
    }

    /// A lease that was renewed. The answer promises the duration of this renewal, even if an earlier one has promised
    /// more.
    pub fn renewed(view: RoomView, secret: LeaseSecret) -> Self {
        let mut holding = Self::granted(view, secret);
        if let Some(lease) = &holding.view.lease {
            holding.valid_for = holding.valid_for.min(lease.lease_duration.as_duration());
        }
        holding
    }
}
