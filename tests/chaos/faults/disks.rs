//! Faults of disks: without power, full, slow, dead.

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

/// How long a node may go on with a disk that fails every write. The raft leader writes at least once a second, and a
/// node takes another second to end.
const NOTICED_MAX: Moment = 8 * SECOND;

/// Cuts the power of one, two or all nodes: their disks lose everything that was not flushed.
pub async fn power(lab: &mut Lab, raft_leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (name, mut dark) = match random.random_range(0..4) {
        0 => ("power cut of the raft leader", vec![raft_leader]),
        1 => ("power cut of two", vec![raft_leader, follower]),
        _ => ("power cut of all", vec![0, 1, 2]),
    };
    dark.shuffle(random);
    // A flush that the cut overtakes may still be reported as done. So the nodes are stopped before the cut.
    for place in &dark {
        lab.signal(*place, Signal::STOP);
    }
    sleep(20 * MILLI).await;
    // These bytes are written and not flushed. If they are there after the cut, it was no power cut.
    let unflushed: Vec<PathBuf> = dark.iter().map(|place| lab.disk(*place).mount.join("unflushed")).collect();
    unflushed.iter().for_each(|file| std::fs::write(file, [1; 4096]).unwrap());
    lab.cut_power(&dark);
    let from = now();
    let mut missed = None;
    for file in &unflushed {
        if std::fs::read(file).is_ok_and(|content| !content.is_empty()) {
            missed = Some(format!("{} survived, although it was never flushed", file.display()));
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

/// Fills a disk. A node that needs to write must end with exit code 70.
pub async fn full(lab: &mut Lab, raft_leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (name, place) = if random.random_bool(0.6) {
        ("the raft leader's disk is full", raft_leader)
    } else {
        ("a raft follower's disk is full", follower)
    };
    let from = now();
    let ballast = lab.disk(place).mount.join("ballast");
    let error = fill(&ballast);
    sleep(random.random_range(4_000..10_000) * MILLI).await;
    let ended = lab.ended(place);
    let strike = Strike::new(
        format!("{name}: {}", if ended.is_some() { "the node ended" } else { "the node went on" }),
        from,
        vec![],
    )
    .leaves_a_quorum(true)
    .missed((error.kind() != ErrorKind::StorageFull).then(|| format!("the disk is not full: {error}")));
    std::fs::remove_file(&ballast).unwrap();
    if ended.is_none() {
        // A node that has just noticed the full disk takes a moment to end.
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

/// Writes until nothing more can be written, and returns the last error. The file system sets space aside for a file
/// that is being written, and a flush frees it. So filling the disk takes several rounds.
fn fill(ballast: &Path) -> std::io::Error {
    let mut file = File::create(ballast).unwrap();
    loop {
        let mut blocks = 0;
        let error = loop {
            match file.write_all(&[0; 4096]) {
                Ok(()) => blocks += 1,
                Err(error) => break error,
            }
        };
        let _ = file.sync_all();
        if blocks == 0 {
            return error;
        }
    }
}

/// Throttles one, two or all disks.
pub async fn slow(lab: &mut Lab, raft_leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (name, places) = match random.random_range(0..10) {
        0..4 => ("the raft leader's disk", vec![raft_leader]),
        4..6 => ("a raft follower's disk", vec![follower]),
        6..8 => ("two disks", vec![raft_leader, follower]),
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
    // The kernel lets a few more writes through after a quiet time. A disk that isn't throttled gets ten a second.
    let most = 2 * (now() - from) / (millis * MILLI) + 3;
    for place in &places {
        lab.brake(*place).release(lab.disk(*place));
    }
    let strike = strike.leaves_a_quorum(places.len() == 1);
    let fast = writes > most * places.len() as u64;
    strike.missed((fast || writes == 0).then(|| format!("{writes} writes, where each throttled disk can do {most}")))
}

/// Makes one or two disks fail for good. Their nodes must end with exit code 70.
pub async fn dead(lab: &mut Lab, raft_leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (name, places) = match random.random_range(0..10) {
        0..5 => ("the raft leader's disk is dead", vec![raft_leader]),
        5..8 => ("a raft follower's disk is dead", vec![follower]),
        _ => ("two disks are dead", vec![raft_leader, follower]),
    };
    let from = now();
    for place in &places {
        lab.disk(*place).cut_power();
    }
    let mut noticed = Vec::new();
    for place in &places {
        // A raft follower notices with the next log entry that it is sent.
        let code = lab.end_of(*place, NOTICED_MAX).await.unwrap_or_else(|why| panic!("{why}\n{}", lab.logs()));
        assert_eq!(code, Some(70), "n{} with a dead disk\n{}", place + 1, lab.logs());
        noticed.push((now() - from) / MILLI);
    }
    let dead_from = now();
    // Meanwhile the nodes with good disks must go on.
    sleep(random.random_range(0..5_000) * MILLI).await;
    let alone = if places.len() == 2 { (0..3).filter(|place| !places.contains(place)).collect() } else { Vec::new() };
    let strike = Strike::new(format!("{name}, noticed after {noticed:?} ms"), dead_from, alone);
    for place in &places {
        lab.disk(*place).unmount().unwrap();
        lab.disk(*place).mount().unwrap();
        lab.start_node(*place);
    }
    strike.needs_raft_election(places.contains(&raft_leader)).leaves_a_quorum(places.len() == 1)
}
