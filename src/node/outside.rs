//! What a node needs that is not its own code.

use std::sync::Arc;

use super::error::NodeError;
use crate::clock::{Clock, SystemClock};
use crate::peer::{Carrier, HttpCarrier};
use crate::random::{Random, SystemRandom};
use crate::storage::{Disk, Durability};

/// What a node has to do with beyond its own code. A simulation has its own of each.
pub struct Outside {
    /// Its time.
    pub clock: Arc<dyn Clock>,
    /// Where its secrets and ids come from.
    pub random: Arc<dyn Random>,
    /// How it reaches its peers.
    pub carrier: Arc<dyn Carrier>,
    /// What it stores on.
    pub disk: Arc<dyn Disk>,
}

impl Outside {
    /// This machine's.
    pub fn real() -> Result<Outside, NodeError> {
        Ok(Outside {
            clock: SystemClock::start()?,
            random: Arc::new(SystemRandom),
            carrier: Arc::new(HttpCarrier::new()?),
            disk: Arc::new(Durability::Fsync),
        })
    }
}
