//! What is between the nodes.

use rand::RngExt;
use rand::rngs::StdRng;

use super::{ELECTION_MAX, Strike};
use crate::clients::sleep;
use crate::history::{MILLI, now};
use crate::lab::Lab;

pub async fn cut(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let third = 3 - leader - follower;
    let both = |a, b| vec![(a, b), (b, a)];
    let (name, cables, alone) = match random.random_range(0..6) {
        0 => ("cut the raft leader off", [both(leader, follower), both(leader, third)].concat(), vec![leader]),
        1 => ("cut a follower off", [both(follower, leader), both(follower, third)].concat(), vec![follower]),
        2 => ("cut between raft leader and follower", both(leader, follower), vec![]),
        3 => ("nothing reaches the raft leader", vec![(follower, leader), (third, leader)], vec![]),
        4 => ("nothing leaves the raft leader", vec![(leader, follower), (leader, third)], vec![]),
        _ => ("nothing leaves a follower", vec![(follower, leader), (follower, third)], vec![]),
    };
    for (from, to) in &cables {
        lab.cut(*from, *to);
    }
    // What was on its way has arrived by then.
    let cut_from = now() + 50 * MILLI;
    let length = random.random_range(1_000..9_000);
    sleep(length * MILLI).await;
    let strike = Strike::new(format!("{name} for {length} ms"), cut_from, alone.clone())
        .elects(alone == [leader] && length * MILLI > ELECTION_MAX);
    lab.join_all();
    strike
}
