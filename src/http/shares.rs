//! Counts what each client has taken of something that is limited, and gives it back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client_address::ClientKey;

/// How many each client has. The table has no more entries than there are things taken.
pub struct Shares {
    taken: Mutex<HashMap<ClientKey, usize>>,
    each_max: usize,
}

impl Shares {
    /// Nothing is taken yet.
    pub fn new(each_max: usize) -> Arc<Self> {
        Arc::new(Self { taken: Mutex::default(), each_max })
    }

    /// One more for this client, or `None` if it has its share already.
    pub fn take(self: &Arc<Self>, client: ClientKey) -> Option<Share> {
        let mut taken = self.taken();
        let count = taken.get(&client).copied().unwrap_or(0);
        if count >= self.each_max {
            return None;
        }
        taken.insert(client, count + 1);
        Some(Share { shares: Arc::clone(self), client })
    }

    /// A lock whose holder panicked is taken all the same: a count that is off by one is better than no service.
    fn taken(&self) -> MutexGuard<'_, HashMap<ClientKey, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held for as long as the thing is.
pub struct Share {
    shares: Arc<Shares>,
    client: ClientKey,
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.shares.taken().entry(self.client) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_share_comes_back_when_it_is_dropped_and_leaves_nothing_behind() {
        let client = |number| ClientKey::of(Ipv4Addr::from_bits(number).into());
        let shares = Shares::new(2);
        let first = shares.take(client(1)).unwrap();
        let second = shares.take(client(1)).unwrap();
        assert!(shares.take(client(1)).is_none(), "two a client");
        let other = shares.take(client(2)).unwrap();
        drop(first);
        let third = shares.take(client(1)).unwrap();
        assert!(shares.take(client(1)).is_none(), "one has come back, not more");
        drop((second, third, other));
        assert!(shares.taken().is_empty());
    }
}
