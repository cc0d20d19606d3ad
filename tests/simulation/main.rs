//! Runs three nodes and their clients in one thread, in simulated time, on simulated machines and a simulated network.
//! Then it checks what the clients saw, and the states of the nodes at each moment. Sockets, clocks, randomness and the
//! effect of a flush are simulated. Everything else is the real code.
//!
//! A seed decides the configuration and all faults. In a process of its own, it repeats itself exactly.
//! - `cargo test --test simulation` runs a few seeds, and `scripts/simulate FROM COUNT` runs many and adds them up.
//! - `QUORATE_SIMULATION_SEED=n cargo test --test simulation -- --exact one_seed --nocapture` runs one seed, or the
//!   scenario with that name. With `QUORATE_LOG=debug` it prints what the nodes log. With
//!   `QUORATE_SIMULATION_HISTORY=FILE` it writes the history to that file.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests use real clocks, threads and chance, and a failed unwrap is a failed test"
)]

mod clients;
mod clock;
mod defect;
mod disk;
mod invariants;
mod network;
mod node;
mod outcome;
mod plan;
mod run;
mod scenarios;
mod stage;
#[path = "../workload/workload.rs"]
mod workload;

use std::process::{Command, ExitCode};

use defect::Defect;
use run::run;

const SEED: &str = "QUORATE_SIMULATION_SEED";
/// The file to which the history is written.
const HISTORY: &str = "QUORATE_SIMULATION_HISTORY";
/// The name of a defect that all machines get.
const DEFECT: &str = "QUORATE_SIMULATION_DEFECT";

/// How many seeds an ordinary test run runs.
const SEEDS: u64 = 8;

/// Runs the seed or the scenario that the environment names. Does nothing if there is none.
#[test]
fn one_seed() -> ExitCode {
    let Ok(seed) = std::env::var(SEED) else { return ExitCode::SUCCESS };
    if let Ok(directives) = std::env::var("QUORATE_LOG") {
        let subscriber = tracing_subscriber::fmt().with_env_filter(directives).with_writer(std::io::stderr);
        subscriber.without_time().with_ansi(false).init();
    }
    // A panic ends only its own task. So that it is noticed, it has to end the process.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::exit(101);
    }));
    let scenario = scenarios::ALL.iter().find(|(name, _)| *name == seed);
    let outcome = match scenario {
        Some((_, play)) => play(),
        None => {
            let defect = std::env::var(DEFECT).ok().map(|name| Defect::named(&name));
            run(seed.parse().expect("the seed is a number or the name of a scenario"), defect)
        }
    };
    println!("{}", outcome.line());
    for violation in outcome.violations.iter().take(10) {
        println!("VIOLATION in seed {seed}: {violation}");
    }
    if !outcome.violations.is_empty() {
        for fault in &outcome.history.faults {
            println!("FAULT from {} to {}: {}", fault.from, fault.undone, fault.name);
        }
    }
    if let Ok(path) = std::env::var(HISTORY) {
        std::fs::write(path, outcome.history.text()).expect("the history can be written to that file");
    }
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a seed in a process of its own. Returns whether all promises were kept, and what it printed.
fn in_a_process(seed: &str, defect: Option<&str>) -> (bool, String) {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "one_seed", "--nocapture"]).env(SEED, seed);
    if let Some(defect) = defect {
        process.env(DEFECT, defect);
    }
    let output = process.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[cfg(tokio_unstable)]
fn line_of(text: &str) -> &str {
    text.lines().find(|line| line.contains("\"seed\":")).unwrap_or_else(|| panic!("no outcome in {text}"))
}

#[test]
fn promises_are_kept_under_all_faults() {
    for seed in 1..=SEEDS {
        let (kept, text) = in_a_process(&seed.to_string(), None);
        assert!(kept, "seed {seed}\n{text}");
    }
}

#[test]
fn bugs_that_were_found_do_not_come_back() {
    for (name, _) in scenarios::ALL {
        let (kept, text) = in_a_process(name, None);
        assert!(kept, "{name}\n{text}");
    }
}

/// Tokio accepts a seed for its random choices only with this flag, which `scripts/simulate` sets.
#[cfg(tokio_unstable)]
#[test]
fn a_seed_repeats_itself() {
    let (_, first) = in_a_process("1", None);
    let (_, second) = in_a_process("1", None);
    assert_eq!(line_of(&first), line_of(&second));
}

/// A simulation that can't fail proves nothing. So each defect must lead to a violation.
fn is_noticed(defect: &str) {
    let noticed = (1..=SEEDS).find(|seed| !in_a_process(&seed.to_string(), Some(defect)).0);
    assert!(noticed.is_some(), "{defect} were not noticed in {SEEDS} seeds");
}

#[test]
fn disks_that_forget_are_noticed() {
    is_noticed("forgetful-disks");
}

#[test]
fn clocks_that_run_fast_are_noticed() {
    is_noticed("fast-clocks");
}
