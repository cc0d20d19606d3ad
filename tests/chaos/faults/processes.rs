//! Faults of processes: killed, paused, told to stop.

use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::Signal;

use super::strike::{HEALING_MAX, RAFT_ELECTION_MAX, Strike};
use crate::lab::Lab;
use crate::outside::now;
use crate::workload::history::{MILLI, SECOND};
use crate::workload::outside::sleep;

/// Kills one, two or all processes, and starts them again after up to 4 s.
pub async fn kill(lab: &mut Lab, raft_leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (name, killed) = match random.random_range(0..10) {
        0..4 => ("kill the raft leader", vec![raft_leader]),
        4..6 => ("kill a raft follower", vec![follower]),
        6..8 => ("kill two", vec![raft_leader, follower]),
        _ => ("kill all", vec![0, 1, 2]),
    };
    for place in &killed {
        lab.kill(*place);
    }
    let dead_from = now();
    // Without any time down, the node is back before the others notice.
    let down = if random.random_bool(0.3) { 0 } else { random.random_range(100..4_000) };
    sleep(down * MILLI).await;
    let alone = if killed.len() == 2 { (0..3).filter(|place| !killed.contains(place)).collect() } else { Vec::new() };
    let needs_raft_election = killed.contains(&raft_leader) && down > RAFT_ELECTION_MAX / MILLI;
    let strike = Strike::new(format!("{name} for {down} ms"), dead_from, alone)
        .needs_raft_election(needs_raft_election)
        .leaves_a_quorum(killed.len() == 1);
    for place in killed {
        lab.start_node(place);
    }
    strike
}

/// Stops a process and lets it continue, so that it has missed some seconds.
pub async fn pause(lab: &mut Lab, raft_leader: usize, follower: usize, seconds: u64, random: &mut StdRng) -> Strike {
    let (name, place) = if random.random_bool(0.6) {
        ("pause the raft leader", raft_leader)
    } else {
        ("pause a raft follower", follower)
    };
    lab.signal(place, Signal::STOP);
    let from = now();
    sleep(seconds * SECOND).await;
    let strike = Strike::new(format!("{name} for {seconds} s"), from, Vec::new())
        .needs_raft_election(place == raft_leader && seconds * SECOND > RAFT_ELECTION_MAX)
        .leaves_a_quorum(true);
    lab.signal(place, Signal::CONT);
    strike
}

/// Stops and starts one node after the other, as an upgrade does.
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
