//! Everything outside the node's own code: time, chance, network and disk.

use std::sync::Arc;

use super::error::NodeError;
use crate::clock::{Clock, SystemClock};
use crate::peer::{Carrier, HttpCarrier};
use crate::random::{Random, SystemRandom};
use crate::storage::{Disk, SystemDisk};

/// The parts of its surroundings that a node uses. A simulation replaces each of them.
pub struct Outside {
    /// The clocks of the machine.
    pub clock: Arc<dyn Clock>,
    /// The source of secrets and ids.
    pub random: Arc<dyn Random>,
    /// The network to the peers.
    pub carrier: Arc<dyn Carrier>,
    /// The disk.
    pub disk: Arc<dyn Disk>,
}

impl Outside {
    /// The real clocks, randomness, network and disk of this machine.
    pub fn real() -> Result<Outside, NodeError> {
        Ok(Outside {
            clock: SystemClock::start()?,
            random: Arc::new(SystemRandom),
            carrier: Arc::new(HttpCarrier::new()?),
            disk: Arc::new(SystemDisk),
        })
    }
}
