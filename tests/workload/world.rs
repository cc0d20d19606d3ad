//! What all clients of a run share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::history::{Moment, Recorder};
use super::outside::Outside;

/// The cluster as all clients know it, and where they record what they see.
pub struct World {
    pub nodes: usize,
    /// The names of the rooms. The clients of a crowd leave the last room alone.
    pub rooms: Vec<String>,
    pub seed: u64,
    pub recorder: Recorder,
    /// Once set, clients finish what they are doing, and holders resign.
    pub closing: AtomicBool,
    pub outside: Box<dyn Outside>,
    /// Every leader token that a client has received.
    pub secrets: std::sync::Mutex<Vec<String>>,
    next_client: AtomicU32,
    next_stream: AtomicU64,
}

/// The beginning of every `Idempotency-Key`, so that a key that leaks can be found.
pub const KEY_CANARY: &str = "canary-key-of-";

impl World {
    pub fn new(outside: impl Outside, nodes: usize, rooms: usize, seed: u64) -> Arc<World> {
        Arc::new(World {
            nodes,
            rooms: (0..rooms).map(|room| format!("chaos-room-{room}")).collect(),
            seed,
            recorder: Recorder::default(),
            closing: AtomicBool::new(false),
            outside: Box::new(outside),
            secrets: std::sync::Mutex::default(),
            next_client: AtomicU32::new(1),
            next_stream: AtomicU64::new(1),
        })
    }

    pub fn now(&self) -> Moment {
        self.outside.now()
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// A number for a new client.
    pub fn next_client(&self) -> u32 {
        self.next_client.fetch_add(1, Ordering::SeqCst)
    }

    /// A number for a new watch stream.
    pub fn next_stream(&self) -> u64 {
        self.next_stream.fetch_add(1, Ordering::SeqCst)
    }
}
