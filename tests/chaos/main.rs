//! Real nodes under faults, and a judge of what their clients saw.
//!
//! `cargo test --test chaos` tries the judge on histories made by hand, and then runs nodes that are killed, paused
//! and restarted for 45 s. `scripts/chaos` runs more, for longer. The environment says what: `QUORATE_CHAOS_SEED`,
//! `QUORATE_CHAOS_SECONDS`, `QUORATE_CHAOS_SCENARIO` (a name, or `all`), `QUORATE_CHAOS_BINARY`.

mod brake;
#[path = "../integration/disk_image.rs"]
mod disk_image;
mod faults;
#[path = "../judge/mod.rs"]
mod judge;
mod lab;
mod outside;
mod proxy;
mod run;
mod wall;

use std::process::{Command, ExitCode, Stdio};

use faults::Scenario;
use history::SECOND;
use judge::{checker, clients, history};

/// Any number would do; a fixed one makes runs alike as far as processes can be.
const DEFAULT_SEED: u64 = 20_261_129;
const DEFAULT_SECONDS: u64 = 45;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs this test again, in a network, a process tree and mounts of its own, which end with it. `None` where that
/// may not be done.
fn run_inside() -> Option<bool> {
    let apart = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"];
    let mut tried = Command::new("unshare");
    tried.args(apart).args(["ip", "link", "add", "tried", "type", "veth"]).stderr(Stdio::null());
    if !tried.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let program = std::env::current_exe().unwrap();
    let mut again = Command::new("unshare");
    again.args(apart).arg(program).args(["--exact", THIS, "--nocapture"]).env(lab::INSIDE, "1");
    Some(again.status().unwrap().success())
}

/// Other tests' disks came along with our copy of the mounts, and would be kept alive by it after they have been
/// unmounted there.
fn let_go_of_other_disks() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for mount in mounts.lines().filter(|mount| mount.starts_with("/dev/loop")) {
        if let Some(place) = mount.split(' ').nth(1) {
            let _ = Command::new("umount").args(["--lazy", place]).status();
        }
    }
}

const THIS: &str = "nodes_keep_their_promises_while_they_are_killed_and_paused_and_restarted";

#[test]
fn nodes_keep_their_promises_while_they_are_killed_and_paused_and_restarted() -> ExitCode {
    if std::env::var_os(lab::INSIDE).is_none() {
        match run_inside() {
            Some(true) => return ExitCode::SUCCESS,
            Some(false) => return ExitCode::FAILURE,
            None => println!("SKIPPED: cut cables; no network can be made here, so nodes share this one"),
        }
    } else {
        let_go_of_other_disks();
    }
    let seed = variable("QUORATE_CHAOS_SEED", DEFAULT_SEED);
    let seconds = variable("QUORATE_CHAOS_SECONDS", DEFAULT_SECONDS);
    let name = std::env::var("QUORATE_CHAOS_SCENARIO").unwrap_or_else(|_| "mix".into());
    let scenarios: Vec<Scenario> =
        Scenario::ALL.into_iter().filter(|scenario| name == "all" || scenario.name() == name).collect();
    assert!(!scenarios.is_empty(), "no scenario {name}; there are {:?}", Scenario::ALL.map(Scenario::name));
    let length = seconds * SECOND / scenarios.len() as u64;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut rows = Vec::new();
    let mut violations = 0;
    for scenario in scenarios {
        println!("--- {} for {} s, seed {seed} ---", scenario.name(), length / SECOND);
        match runtime.block_on(run::run(scenario, seed, length)) {
            Ok(outcome) => {
                violations += outcome.verdict.violations.len();
                rows.push(outcome.row());
            }
            Err(why) => println!("SKIPPED: {}: {why}", scenario.name()),
        }
    }
    println!("{}\n{}", run::HEAD, rows.join("\n"));
    // What was asked for and can't be done here has proved nothing.
    if violations == 0 && !rows.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
