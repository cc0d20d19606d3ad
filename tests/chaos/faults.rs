//! What is done to the nodes, by a schedule that a seed draws.

use std::io::Write;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rustix::process::Signal;

use crate::clients::sleep;
use crate::history::{Fault, MILLI, Moment, SECOND, now};
use crate::lab::Lab;

/// How long everything may take to serve again once a fault is undone.
const HEALING_MAX: Moment = 30 * SECOND;

/// A kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// kill -9 of the raft leader, a follower, two nodes, all.
    Kill,
    /// SIGSTOP of the raft leader or a follower, for 1, 5 or 30 s.
    Pause,
    /// SIGTERM and start, one node after the other.
    Restart,
    /// The three above.
    Mix,
    /// Cables: a node cut off, two nodes apart, one way only.
    Cut,
    /// Power: one node, two, all.
    Power,
    /// A disk that fills up.
    Full,
}

impl Scenario {
    pub const ALL: [Scenario; 7] =
        [Self::Kill, Self::Pause, Self::Restart, Self::Mix, Self::Cut, Self::Power, Self::Full];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Restart => "restart",
            Self::Mix => "mix",
            Self::Cut => "cut",
            Self::Power => "power",
            Self::Full => "full",
        }
    }

    pub fn needs_disks(self) -> bool {
        matches!(self, Self::Power | Self::Full)
    }

    pub fn needs_networks(self) -> bool {
        self == Self::Cut
    }
}

/// Does one thing to the nodes, undoes it, and waits until they serve again.
pub async fn strike(lab: &mut Lab, scenario: Scenario, random: &mut StdRng) -> Fault {
    let from = now();
    let leader = lab.raft_leader().await.unwrap_or(0);
    let follower = (leader + random.random_range(1..=2)) % 3;
    let mut fault = match scenario {
        Scenario::Kill => kill(lab, leader, follower, random).await,
        Scenario::Pause => {
            // Long ones are rare, or short runs would be nothing else.
            let seconds = [1, 5, 1, 5, 1, 5, 1, 5, 1, 30][random.random_range(0..10)];
            pause(lab, leader, follower, seconds, random).await
        }
        Scenario::Restart => restart(lab).await,
        Scenario::Mix => match random.random_range(0..8) {
            0..4 => kill(lab, leader, follower, random).await,
            4..7 => pause(lab, leader, follower, [1, 5][random.random_range(0..2)], random).await,
            _ => restart(lab).await,
        },
        Scenario::Cut => cut(lab, leader, follower, random).await,
        Scenario::Power => power(lab, leader, follower, random).await,
        Scenario::Full => full(lab, leader, follower, random).await,
    };
    fault.from = from;
    fault.healed = lab.healed(HEALING_MAX).await;
    fault
}

fn fault(name: impl Into<String>, cut: Moment, without_quorum: Vec<usize>) -> Fault {
    Fault { name: name.into(), from: cut, undone: now(), healed: None, without_quorum, cut }
}

async fn kill(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Fault {
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

async fn pause(lab: &mut Lab, leader: usize, follower: usize, seconds: u64, random: &mut StdRng) -> Fault {
    let (name, place) =
        if random.random_bool(0.6) { ("pause the raft leader", leader) } else { ("pause a follower", follower) };
    lab.signal(place, Signal::STOP);
    let from = now();
    sleep(seconds * SECOND).await;
    let fault = fault(format!("{name} for {seconds} s"), from, Vec::new());
    lab.signal(place, Signal::CONT);
    fault
}

async fn restart(lab: &mut Lab) -> Fault {
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

async fn cut(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Fault {
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
    let fault = fault(format!("{name} for {length} ms"), cut_from, alone);
    lab.join_all();
    fault
}

async fn power(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Fault {
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

async fn full(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Fault {
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
