//! The clients and watchers that use a cluster during a run.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::task::JoinSet;

use super::client::Client;
use super::history::Moment;
use super::watching::keep_watching;
use super::world::World;

/// How the contenders behave.
#[derive(Debug, Clone)]
pub struct Habits {
    /// One entry for each contender of a room: how many seconds it waits for the room, or 0 if it doesn't wait.
    pub waits_seconds: Vec<u64>,
    /// How long a contender pauses at most before its next campaign. Longer pauses make rooms vacant more often.
    pub rest_max: Moment,
}

/// Several contenders for each room, some readers, and one watcher for each room at each node. The watchers are among
/// the observers, which go on until they are dropped.
pub struct Crowd {
    pub clients: JoinSet<()>,
    pub observers: JoinSet<()>,
    /// The number of the open watch stream of each watcher; 0 while it has none.
    pub open: Vec<Arc<AtomicU64>>,
}

impl Crowd {
    /// Starts all of them. They leave the last of the world's rooms alone.
    pub fn enter(world: &Arc<World>, habits: &Habits, readers: usize) -> Crowd {
        let mut crowd = Crowd { clients: JoinSet::new(), observers: JoinSet::new(), open: Vec::new() };
        for room in 0..world.rooms.len() - 1 {
            for wait_seconds in &habits.waits_seconds {
                crowd.clients.spawn(Client::new(world).contend(room, *wait_seconds, habits.rest_max));
            }
            for node in 0..world.nodes {
                let stream = Arc::new(AtomicU64::new(0));
                crowd.open.push(stream.clone());
                crowd.observers.spawn(keep_watching(world.clone(), node, room, stream));
            }
        }
        for _ in 0..readers {
            crowd.clients.spawn(Client::new(world).keep_reading());
        }
        crowd
    }

    /// Waits until all clients have ended, which they do once the world is closing. Returns whether they did in time.
    pub async fn leave(&mut self) -> bool {
        let all_end = async {
            while let Some(ended) = self.clients.join_next().await {
                ended.expect("clients do not panic");
            }
        };
        tokio::time::timeout(Duration::from_secs(40), all_end).await.is_ok()
    }
}
