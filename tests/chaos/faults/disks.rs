//! Disks: without power, full, slow, dead.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rustix::process::Signal;

use super::strike::Strike;
use crate::lab::Lab;
use crate::outside::now;
use crate::workload::history::{MILLI, Moment, SECOND};
use crate::workload::outside::sleep;

/// How long a node may go on with a disk that fails every write: the raft leader writes at least once a second, and
/// what it ends with takes another second.
const NOTICED_MAX: Moment = 8 * SECOND;

pub async fn power(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Strike {
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
    // What is written now, and not flushed, is on the disk afterwards only if it was not the power that was cut.
    let unflushed: Vec<PathBuf> = dark.iter().map(|place| lab.disk(*place).mount.join("unflushed")).collect();
    unflushed.iter().for_each(|file| std::fs::write(file, [1; 4096]).unwrap());
    lab.cut_power(&dark);
    let from = now();
    let mut missed = None;
    for file in &unflushed {
        if std::fs::read(file).is_ok_and(|content| !content.is_empty()) {
            missed = Some(format!("{} was never flushed, and is there", file.display()));
        }
        let _ = std::fs::remove_file(file);
    }
    sleep(random.random_range(0..2_000) * MILLI).await;
    let alone = if dark.len() == 2 { (0..3).filter(|place| !dark.contains(place)).collect() } else { Vec::new() };
    let strike = Strike::new(name, from, alone).leaves_a_quorum(dark.len() == 1).missed(missed);
    for place in dark {
        lab.start_node(place);
    }
    strike
}

pub async fn full(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (name, place) = if random.random_bool(0.6) {
        ("the raft leader's disk is full", leader)
    } else {
        ("a follower's disk is full", follower)
    };
    let from = now();
    let ballast = lab.disk(place).mount.join("ballast");
    let refused = fill(&ballast);
    sleep(random.random_range(4_000..10_000) * MILLI).await;
    let ended = lab.ended(place);
    let strike = Strike::new(
        format!("{name}: {}", if ended.is_some() { "it ended" } else { "it did not matter" }),
        from,
        vec![],
    )
    .leaves_a_quorum(true)
    .missed((refused.kind() != ErrorKind::StorageFull).then(|| format!("the disk is not full: {refused}")));
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
    strike
}

/// Writes until nothing more can be written, and says why not. What was set aside for a file that is being written is
/// free again once it is flushed, so this takes more than one turn.
fn fill(ballast: &Path) -> std::io::Error {
    let mut file = File::create(ballast).unwrap();
    loop {
        let mut blocks = 0;
        let refused = loop {
            match file.write_all(&[0; 4096]) {
                Ok(()) => blocks += 1,
                Err(refused) => break refused,
            }
        };
        let _ = file.sync_all();
        if blocks == 0 {
            return refused;
        }
    }
}

pub async fn slow(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (name, places) = match random.random_range(0..10) {
        0..4 => ("the raft leader's disk", vec![leader]),
        4..6 => ("a follower's disk", vec![follower]),
        6..8 => ("two disks", vec![leader, follower]),
        _ => ("all disks", vec![0, 1, 2]),
    };
    let millis = [300, 3_000][random.random_range(0..2)];
    let count = |lab: &Lab| places.iter().map(|place| lab.brake(*place).writes(lab.disk(*place))).sum::<u64>();
    let written_before = count(lab);
    let from = now();
    for place in &places {
        lab.brake(*place).press(lab.disk(*place), millis);
    }
    sleep(random.random_range(3_000..10_000) * MILLI).await;
    let writes = count(lab) - written_before;
    let strike = Strike::new(format!("{name}: {millis} ms a block, {writes} writes"), from, vec![]);
    // The kernel lets a few more through after a quiet time; a disk without a brake is asked for ten a second.
    let most = 2 * (now() - from) / (millis * MILLI) + 3;
    for place in &places {
        lab.brake(*place).release(lab.disk(*place));
    }
    let strike = strike.leaves_a_quorum(places.len() == 1);
    let fast = writes > most * places.len() as u64;
    strike.missed((fast || writes == 0).then(|| format!("{writes} writes, where {most} a disk are what it can do")))
}

pub async fn dead(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (name, places) = match random.random_range(0..10) {
        0..5 => ("the raft leader's disk is dead", vec![leader]),
        5..8 => ("a follower's disk is dead", vec![follower]),
        _ => ("two disks are dead", vec![leader, follower]),
    };
    let from = now();
    for place in &places {
        lab.disk(*place).cut_power();
    }
    let mut noticed = Vec::new();
    for place in &places {
        // One that follows learns of it with the next entry that it is sent, which takes a raft leader.
        let code = lab.end_of(*place, NOTICED_MAX).await.unwrap_or_else(|why| panic!("{why}\n{}", lab.logs()));
        assert_eq!(code, Some(70), "n{} with a dead disk\n{}", place + 1, lab.logs());
        noticed.push((now() - from) / MILLI);
    }
    let dead_from = now();
    // The others have this long to show that they serve without it.
    sleep(random.random_range(0..5_000) * MILLI).await;
    let alone = if places.len() == 2 { (0..3).filter(|place| !places.contains(place)).collect() } else { Vec::new() };
    let strike = Strike::new(format!("{name}, noticed after {noticed:?} ms"), dead_from, alone);
    for place in &places {
        lab.disk(*place).unmount().unwrap();
        lab.disk(*place).mount().unwrap();
        lab.start_node(*place);
    }
    strike.elects(places.contains(&leader)).leaves_a_quorum(places.len() == 1)
}
