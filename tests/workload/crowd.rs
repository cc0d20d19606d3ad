//! All clients of a run.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::task::JoinSet;

use super::history::Moment;
use super::watching::keep_watching;
use super::world::World;

/// How the contenders for a room go about it.
#[derive(Debug, Clone)]
pub struct Habits {
    /// For how long each of them waits for the room, in seconds; 0 for one that doesn't.
    pub waits_seconds: Vec<u64>,
    /// How long they rest at most before they want it again. The longer, the more often it is vacant.
    pub rest_max: Moment,
}

/// Those who use the cluster: some contend for each room, and some of these wait for it; some read; and each room is
/// watched on each node, which observers do until they are dropped.
pub struct Crowd {
    pub clients: JoinSet<()>,
    pub observers: JoinSet<()>,
    /// The watch streams that are open, by their numbers; 0 for one that isn't.
    pub open: Vec<Arc<AtomicU64>>,
}

impl Crowd {
    /// Has them begin. The last of the world's rooms is left to others.
    pub fn enter(world: &Arc<World>, habits: &Habits, readers: usize) -> Crowd {
        let mut crowd = Crowd { clients: JoinSet::new(), observers: JoinSet::new(), open: Vec::new() };
        for room in 0..world.rooms.len() - 1 {
            for wait_seconds in &habits.waits_seconds {
                crowd.clients.spawn(world.client().contend(room, *wait_seconds, habits.rest_max));
            }
            for node in 0..world.nodes {
                let stream = Arc::new(AtomicU64::new(0));
                crowd.open.push(stream.clone());
                crowd.observers.spawn(keep_watching(world.clone(), node, room, stream));
            }
        }
        for _ in 0..readers {
            crowd.clients.spawn(world.client().keep_reading());
        }
        crowd
    }

    /// Waits until all clients have ended, once the world is closing. Whether they did.
    pub async fn leave(&mut self) -> bool {
        let all_end = async {
            while let Some(ended) = self.clients.join_next().await {
                ended.expect("no client gives up");
            }
        };
        tokio::time::timeout(Duration::from_secs(40), all_end).await.is_ok()
    }
}
