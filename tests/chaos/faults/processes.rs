//! Processes: killed, paused, told to stop.

use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::Signal;

use super::strike::{ELECTION_MAX, HEALING_MAX, Strike};
use crate::lab::Lab;
use crate::outside::now;
use crate::workload::history::{MILLI, SECOND};
use crate::workload::outside::sleep;

pub async fn kill(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (name, killed) = match random.random_range(0..10) {
        0..4 => ("kill the raft leader", vec![leader]),
        4..6 => ("kill a follower", vec![follower]),
        6..8 => ("kill two", vec![leader, follower]),
        _ => ("kill all", vec![0, 1, 2]),
    };
    for place in &killed {
        lab.kill(*place);
    }
    let dead_from = now();
    // A node that is back before anybody misses it is a case of its own.
    let down = if random.random_bool(0.3) { 0 } else { random.random_range(100..4_000) };
    sleep(down * MILLI).await;
    let alone = if killed.len() == 2 { (0..3).filter(|place| !killed.contains(place)).collect() } else { Vec::new() };
    // All of them may elect the same one again, in a new raft term.
    let elects = killed.contains(&leader) && down > ELECTION_MAX / MILLI;
    let strike = Strike::new(format!("{name} for {down} ms"), dead_from, alone)
        .elects(elects)
        .leaves_a_quorum(killed.len() == 1);
    for place in killed {
        lab.start_node(place);
    }
    strike
}

pub async fn pause(lab: &mut Lab, leader: usize, follower: usize, seconds: u64, random: &mut StdRng) -> Strike {
    let (name, place) =
        if random.random_bool(0.6) { ("pause the raft leader", leader) } else { ("pause a follower", follower) };
    lab.signal(place, Signal::STOP);
    let from = now();
    sleep(seconds * SECOND).await;
    let strike = Strike::new(format!("{name} for {seconds} s"), from, Vec::new())
        .elects(place == leader && seconds * SECOND > ELECTION_MAX)
        .leaves_a_quorum(true);
    lab.signal(place, Signal::CONT);
    strike
}

pub async fn restart(lab: &mut Lab) -> Strike {
    let from = now();
    for place in 0..3 {
        lab.signal(place, Signal::TERM);
        let code = lab.end_of(place, 20 * SECOND).await.unwrap_or_else(|why| panic!("{why}\n{}", lab.logs()));
        assert_eq!(code, Some(0), "n{} after SIGTERM\n{}", place + 1, lab.logs());
        lab.start_node(place);
        if place < 2 && lab.healed(HEALING_MAX).await.is_none() {
            break;
        }
    }
    Strike::new("rolling restart", from, Vec::new()).leaves_a_quorum(true)
}
