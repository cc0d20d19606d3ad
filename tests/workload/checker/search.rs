//! A second check of linearizability, to compare with [`super::statuses`]. It tries every order of a few answers that
//! real time allows (Wing and Gong, 1993). It is slow, but so simple that a reader can see that it is right.

use super::observations::{Observation, Says};

/// The state of a room.
#[derive(Clone, Copy)]
struct Room {
    /// The term of the last grant, and whether that lease still lasts.
    last: u64,
    is_occupied: bool,
}

/// Whether the answers about one room have an order that explains them all. Each answer must be right at its place. If
/// one answer had come before another was asked for, it must stand before that one. Between two answers a lease may
/// end, and another may be granted.
pub fn is_linearizable(observed: &[Observation]) -> bool {
    assert!(observed.len() <= 12, "too many to try every order");
    orders(&mut observed.to_vec(), Room { last: 0, is_occupied: false })
}

fn orders(left: &mut Vec<Observation>, room: Room) -> bool {
    if left.is_empty() {
        return true;
    }
    let first_end = left.iter().map(|observation| observation.answered_at).min().expect("some are left");
    for place in 0..left.len() {
        let next = left[place];
        if next.sent_at > first_end {
            continue;
        }
        left.swap_remove(place);
        let fits = after(room, next.says).is_some_and(|room| orders(left, room));
        left.push(next);
        let last = left.len() - 1;
        left.swap(place, last);
        if fits {
            return true;
        }
    }
    false
}

/// The state of the room after an answer. Right before the answer, the lease that it shows may have been granted, and
/// any earlier lease may have ended. `None` if the answer can't be right at this place.
fn after(room: Room, says: Says) -> Option<Room> {
    match says {
        Says::Occupied { term, .. } => room.is_or_becomes(term),
        Says::Vacant => Some(Room { is_occupied: false, ..room }),
        Says::Resigned { term } => room.is_or_becomes(term).map(|room| Room { is_occupied: false, ..room }),
        // The lease was granted earlier and has ended. Another contender may hold the room now.
        Says::Over { term } if term < room.last => Some(room),
        Says::Over { term } => Some(Room { last: term, is_occupied: false }),
    }
}

impl Room {
    fn is_or_becomes(self, term: u64) -> Option<Room> {
        let is_so = term == self.last && self.is_occupied;
        (is_so || term > self.last).then_some(Room { last: term, is_occupied: true })
    }
}
