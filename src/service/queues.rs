//! The order in which campaigns of this node wait for a room.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::domain::RoomId;

/// A queue for each room that a campaign of this node waits for.
#[derive(Default)]
pub struct Queues {
    rooms: Mutex<HashMap<RoomId, Arc<tokio::sync::Mutex<()>>>>,
}

impl Queues {
    /// Returns when every earlier caller has won, given up or disconnected. Tokio's mutex serves its waiters in order.
    pub async fn come_first(&self, room: &RoomId) -> OwnedMutexGuard<()> {
        let queue = {
            let mut rooms = self.rooms.lock();
            rooms.retain(|_, queue| Arc::strong_count(queue) > 1);
            rooms.entry(room.clone()).or_default().clone()
        };
        queue.lock_owned().await
    }
}
