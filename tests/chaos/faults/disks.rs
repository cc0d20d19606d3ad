//! Disks: without power, or full.

use std::io::Write;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rustix::process::Signal;

use super::fault;
use crate::clients::sleep;
use crate::history::{Fault, MILLI, SECOND, now};
use crate::lab::Lab;

pub async fn power(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Fault {
    let (name, mut dark) = match random.random_range(0..4) {
        0 => ("power cut of the raft leader", vec![leader]),
        1 => ("power cut of two", vec![leader, follower]),
        _ => ("power cut of all", vec![0, 1, 2]),
    };
    dark.shuffle(random);
    // A flush that a cut overtakes can be reported as done all the same. So nobody may speak from before the cut on.
    for place in &dark {
        lab.signal(*place, Signal::STOP);
    }
    sleep(20 * MILLI).await;
    lab.cut_power(&dark);
    let from = now();
    sleep(random.random_range(0..2_000) * MILLI).await;
    let alone = if dark.len() == 2 { (0..3).filter(|place| !dark.contains(place)).collect() } else { Vec::new() };
    let fault = fault(name, from, alone);
    for place in dark {
        lab.start_node(place);
    }
    fault
}

pub async fn full(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Fault {
    let (name, place) = if random.random_bool(0.6) {
        ("the raft leader's disk is full", leader)
    } else {
        ("a follower's disk is full", follower)
    };
    let from = now();
    let ballast = lab.nodes[place].disk.as_ref().expect("a disk of its own").mount.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let _ = file.sync_all();
    drop(file);
    sleep(random.random_range(4_000..10_000) * MILLI).await;
    let ended = lab.ended(place);
    let fault =
        fault(format!("{name}: {}", if ended.is_some() { "it ended" } else { "it did not matter" }), from, vec![]);
    std::fs::remove_file(&ballast).unwrap();
    if ended.is_none() {
        // A node that has just noticed takes a moment to end; only one that goes on is alive.
        sleep(2 * SECOND).await;
    }
    match ended.or_else(|| lab.ended(place)) {
        Some(code) => {
            assert_eq!(code, Some(70), "n{} with a full disk\n{}", place + 1, lab.logs());
            lab.start_node(place);
        }
        None => assert!(lab.is_running(place)),
    }
    fault
}
