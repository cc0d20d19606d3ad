//! Processes: killed, paused, told to stop.

use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::Signal;

use super::{HEALING_MAX, fault};
use crate::clients::sleep;
use crate::history::{Fault, MILLI, SECOND, now};
use crate::lab::Lab;

pub async fn kill(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Fault {
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
    let fault = fault(format!("{name} for {down} ms"), dead_from, alone);
    for place in killed {
        lab.start_node(place);
    }
    fault
}

pub async fn pause(lab: &mut Lab, leader: usize, follower: usize, seconds: u64, random: &mut StdRng) -> Fault {
    let (name, place) =
        if random.random_bool(0.6) { ("pause the raft leader", leader) } else { ("pause a follower", follower) };
    lab.signal(place, Signal::STOP);
    let from = now();
    sleep(seconds * SECOND).await;
    let fault = fault(format!("{name} for {seconds} s"), from, Vec::new());
    lab.signal(place, Signal::CONT);
    fault
}

pub async fn restart(lab: &mut Lab) -> Fault {
    let from = now();
    for place in 0..3 {
        lab.signal(place, Signal::TERM);
        let deadline = now() + 20 * SECOND;
        let code = loop {
            if let Some(code) = lab.ended(place) {
                break code;
            }
            assert!(now() < deadline, "n{} does not stop within 20 s of SIGTERM\n{}", place + 1, lab.logs());
            sleep(10 * MILLI).await;
        };
        assert_eq!(code, Some(0), "n{} after SIGTERM\n{}", place + 1, lab.logs());
        lab.start_node(place);
        if place < 2 && lab.healed(HEALING_MAX).await.is_none() {
            break;
        }
    }
    fault("rolling restart", from, Vec::new())
}
