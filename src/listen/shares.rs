//! Counts the places of each client, and limits them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;

use super::client_key::ClientKey;

/// The number of places that each client has. The table has no more entries than there are places taken.
pub struct Shares {
    taken: Mutex<HashMap<ClientKey, usize>>,
    each_max: usize,
}

impl Shares {
    /// A table without a taken place. Each client may have `each_max` places.
    pub fn new(each_max: usize) -> Arc<Self> {
        Arc::new(Self { taken: Mutex::default(), each_max })
    }

    /// Takes one more place for this client. If the client has its share already, this returns `None`.
    pub fn take(self: &Arc<Self>, client: ClientKey) -> Option<Share> {
        let mut taken = self.taken.lock();
        let count = taken.get(&client).copied().unwrap_or(0);
        if count >= self.each_max {
            return None;
        }
        taken.insert(client, count + 1);
        Some(Share { shares: Arc::clone(self), client })
    }
}

/// One counted place of a client. Dropping it gives the place back.
pub struct Share {
    shares: Arc<Shares>,
    client: ClientKey,
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.shares.taken.lock().entry(self.client) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests;
