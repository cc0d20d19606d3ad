//! Runs real nodes, injects faults, and checks what the clients saw against what is promised.
//!
//! `cargo test --test chaos` tests the checker on histories made by hand. Then it kills, pauses and restarts nodes for
//! 45 s. `scripts/chaos` runs more kinds of faults for longer. It sets the environment variables `QUORATE_CHAOS_SEED`,
//! `QUORATE_CHAOS_SECONDS`, `QUORATE_CHAOS_SCENARIO` (a name, or `all`) and `QUORATE_CHAOS_BINARY`.
//!
//! A scenario that this machine, or our rights on it, don't allow is left out. The process then ends with `LEFT_OUT` if
//! nothing else was wrong. The scenario that runs by default needs nothing special.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests use real clocks, threads and chance, and a failed unwrap is a failed test"
)]

mod brake;
#[path = "../integration/disk_image.rs"]
mod disk_image;
mod faults;
mod lab;
mod leaks;
mod means;
mod network;
mod node;
mod outside;
mod panics;
mod proxy;
mod run;
mod wall;
#[path = "../workload/workload.rs"]
mod workload;

use std::io::Write;
use std::process::{Command, ExitCode};

use faults::Scenario;
use workload::history::SECOND;

/// Any number would do. A fixed one makes two runs as similar as real processes can be.
const DEFAULT_SEED: u64 = 20_261_129;
const DEFAULT_SECONDS: u64 = 45;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// The exit code if a scenario that was asked for can't run here. It is the one of Autotools for a skipped test: a
/// scenario that is left out proves nothing.
const LEFT_OUT: i32 = 77;

/// Runs this test again in a process with a network, a process tree and mounts of its own, and returns its exit code.
/// Network, processes and mounts end with that process.
///
/// # Errors
/// Why that can't be done here.
fn run_inside() -> Result<Option<i32>, String> {
    let apart = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"];
    let make = ["ip", "link", "add", "name", "tried", "type", "bridge"];
    disk_image::run(Command::new("unshare").args(apart).args(make))?;
    let make = ["ip", "link", "add", "name", "tried", "type", "veth"];
    disk_image::run(Command::new("unshare").args(apart).args(make))?;
    let program = std::env::current_exe().unwrap();
    let mut again = Command::new("unshare");
    again.args(apart).arg(program).args(["--exact", THIS, "--nocapture"]).env(lab::INSIDE, "1");
    Ok(again.status().unwrap().code())
}

/// Prints to stderr directly. The test harness hides what a successful test prints in other ways.
fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Unmounts the disks of other tests in our copy of the mounts. Otherwise the copy would keep those disks in use after
/// their own tests have unmounted them.
fn let_go_of_other_disks() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for mount in mounts.lines().filter(|mount| mount.starts_with("/dev/loop")) {
        if let Some(place) = mount.split(' ').nth(1) {
            let _ = Command::new("umount").args(["--lazy", place]).status();
        }
    }
}

/// The scenarios that were asked for and can run here, and a message for each that can't.
fn scenarios() -> (Vec<Scenario>, Vec<String>) {
    let name = std::env::var("QUORATE_CHAOS_SCENARIO").unwrap_or_else(|_| "mix".into());
    let asked: Vec<Scenario> =
        Scenario::ALL.into_iter().filter(|scenario| name == "all" || scenario.name() == name).collect();
    assert!(!asked.is_empty(), "there is no scenario {name}, only {:?}", Scenario::ALL.map(Scenario::name));
    let (mut scenarios, mut left_out) = (Vec::new(), Vec::new());
    for scenario in asked {
        match means::missing(scenario.gear()) {
            Some(why) => left_out.push(format!("LEFT OUT: scenario {} can't run here: {why}", scenario.name())),
            None => scenarios.push(scenario),
        }
    }
    (scenarios, left_out)
}

const THIS: &str = "nodes_keep_their_promises_while_they_are_killed_and_paused_and_restarted";

#[test]
fn nodes_keep_their_promises_while_they_are_killed_and_paused_and_restarted() -> ExitCode {
    if lab::is_apart() {
        let_go_of_other_disks();
    } else {
        match run_inside() {
            Ok(Some(0)) => return ExitCode::SUCCESS,
            Ok(Some(LEFT_OUT)) => std::process::exit(LEFT_OUT),
            Ok(_) => return ExitCode::FAILURE,
            Err(why) => {
                say(&format!("chaos: the nodes share this network, since they can't have networks of their own: {why}"))
            }
        }
    }
    let seed = variable("QUORATE_CHAOS_SEED", DEFAULT_SEED);
    let seconds = variable("QUORATE_CHAOS_SECONDS", DEFAULT_SECONDS);
    let (scenarios, left_out) = scenarios();
    let length = seconds * SECOND / scenarios.len().max(1) as u64;
    panics::count();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_name(panics::THREADS).enable_all().build().unwrap();
    let mut rows = Vec::new();
    let mut failed = false;
    for scenario in scenarios {
        println!("--- {} for {} s, seed {seed} ---", scenario.name(), length / SECOND);
        match runtime.block_on(run::run(scenario, seed, length)) {
            Ok(outcome) => {
                failed |= !outcome.verdict.violations.is_empty();
                rows.push(outcome.row());
            }
            Err(why) => {
                failed = true;
                println!("BROKEN: the lab of scenario {}: {why}", scenario.name());
            }
        }
    }
    println!("{}\n{}", run::HEAD, rows.join("\n"));
    left_out.iter().for_each(|what| say(what));
    if failed {
        return ExitCode::FAILURE;
    }
    if !left_out.is_empty() {
        std::process::exit(LEFT_OUT);
    }
    ExitCode::SUCCESS
}
