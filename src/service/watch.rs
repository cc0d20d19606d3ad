//! A stream of views of one room, from what is applied on this node.

use std::time::Duration;

use tokio::sync::broadcast;

use crate::consensus::Consensus;
use crate::domain::{RoomId, RoomView};

/// How often a quiet stream checks that its silence still means that nothing happened.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// See [`super::RoomService::watch`].
pub struct RoomWatch {
    consensus: Consensus,
    first: Option<RoomView>,
    changes: broadcast::Receiver<RoomView>,
}

impl RoomWatch {
    pub(super) fn new(consensus: Consensus, room: &RoomId) -> Self {
        let (view, changes) = consensus.replica().watch(room);
        Self { consensus, first: Some(view), changes }
    }

    /// The next view. `None` when the stream is over: its reader fell behind, or this node has lost touch with
    /// the cluster, so that silence would no longer mean that nothing happened.
    pub async fn next(&mut self) -> Option<RoomView> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            match tokio::time::timeout(CHECK_EVERY, self.changes.recv()).await {
                Ok(change) => return change.ok(),
                Err(_) if self.consensus.readiness().is_err() => return None,
                Err(_) => {}
            }
        }
    }
}
