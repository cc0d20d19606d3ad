//! A second opinion on [`super::statuses`]: tries every order of a few answers that real time allows (as Wing and Gong
//! did), on a room that is a variable. Slow, and so obvious that it needs no argument.

use super::observations::{Observation, Says};

/// How a room stands.
#[derive(Clone, Copy)]
struct Room {
    /// The term of the last grant, and whether it still holds.
    last: u64,
    is_held: bool,
}

/// Whether the answers of one room have an order in which each is right when it is its turn, and which never puts one
/// before another that had come before it was asked for. Between two answers a lease may end, and another be granted.
pub fn is_linearizable(observed: &[Observation]) -> bool {
    assert!(observed.len() <= 12, "too many for every order of them");
    orders(&mut observed.to_vec(), Room { last: 0, is_held: false })
}

fn orders(left: &mut Vec<Observation>, room: Room) -> bool {
    if left.is_empty() {
        return true;
    }
    let first_end = left.iter().map(|observation| observation.t1).min().expect("some are left");
    for place in 0..left.len() {
        let next = left[place];
        if next.t0 > first_end {
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

/// How the room stands after an answer, with as little granted before as it takes; `None` if it can't be.
fn after(room: Room, says: Says) -> Option<Room> {
    match says {
        Says::Held { term, .. } => room.is_or_becomes(term),
        Says::Vacant => Some(Room { is_held: false, ..room }),
        Says::Resigned { term } => room.is_or_becomes(term).map(|room| Room { is_held: false, ..room }),
        // It was granted, and is held no more; it may be somebody else's.
        Says::Over { term } if term < room.last => Some(room),
        Says::Over { term } => Some(Room { last: term, is_held: false }),
    }
}

impl Room {
    fn is_or_becomes(self, term: u64) -> Option<Room> {
        let is_so = term == self.last && self.is_held;
        (is_so || term > self.last).then_some(Room { last: term, is_held: true })
    }
}
