//! A stream of views of one room, from the state as applied on this node.

use std::time::Duration;

use tokio::sync::broadcast;

use crate::consensus::Consensus;
use crate::domain::{RoomId, RoomView};

/// A stream without changes checks this often that this node is still in touch with the cluster.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A stream of views of one room. See [`super::RoomService::watch`].
pub struct RoomWatch {
    consensus: Consensus,
    first: Option<RoomView>,
    views: broadcast::Receiver<RoomView>,
}

impl RoomWatch {
    pub(super) fn new(consensus: Consensus, room: &RoomId) -> Self {
        let (view, views) = consensus.replica().watch(room);
        Self { consensus, first: Some(view), views }
    }

    /// The next view. `None` at the end of the stream: its reader fell behind, or this node has lost touch with the
    /// cluster and might miss changes.
    pub async fn next(&mut self) -> Option<RoomView> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            match tokio::time::timeout(CHECK_EVERY, self.views.recv()).await {
                Ok(view) => return view.ok(),
                Err(_) if self.consensus.readiness().is_err() => return None,
                Err(_) => {}
            }
        }
    }
}
