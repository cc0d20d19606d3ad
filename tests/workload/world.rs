//! What all clients of a run share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::history::{Moment, Recorder};
use super::outside::Outside;

/// What all clients share.
pub struct World {
    pub nodes: usize,
    pub rooms: Vec<String>,
    pub seed: u64,
    pub recorder: Recorder,
    /// Everybody finishes what they do, and holders resign.
    pub closing: AtomicBool,
    pub outside: Box<dyn Outside>,
    pub secrets: std::sync::Mutex<Vec<String>>,
    pub(super) next_client: AtomicU32,
    pub(super) next_stream: AtomicU64,
}

/// Every key begins so, so that a key that leaks is found.
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
}
