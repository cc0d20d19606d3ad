//! Log time never runs faster than real time, whatever happens to raft leaders and clocks.
//!
//! A schedule has a few hundred random events among three nodes (`cluster`). The parts under test, `Rooms` and
//! `LeaseClock`, are real. Raft, clocks and network are a model. `watch` compares each committed entry with real time.
//!
//! The same schedules run with broken copies of the rule (`rules`), and must catch each of them. Otherwise they would
//! prove nothing about the real rule.

mod cluster;
mod rules;
mod simulated_clock;
mod watch;

use cluster::Cluster;
use rules::Rule;
use watch::{Coverage, Violation};

/// Enough to catch each broken rule many times, and few enough for every test run.
const SCHEDULES: u64 = 4_000;
const SCHEDULES_PER_BROKEN_RULE: u64 = 400;

/// Plays the schedule of one seed.
fn play(rule: Rule, seed: u64) -> (Result<(), Violation>, Coverage) {
    let mut cluster = Cluster::new(rule, seed);
    let result = cluster.disturb().and_then(|()| cluster.calm());
    (result, cluster.coverage())
}

/// Plays many schedules, and returns the seeds that broke a promise.
fn violations(rule: Rule, seeds: std::ops::Range<u64>) -> (Vec<(u64, Violation)>, Coverage) {
    let mut found = Vec::new();
    let mut total = Coverage::default();
    for seed in seeds {
        let (result, coverage) = play(rule, seed);
        total += coverage;
        if let Err(violation) = result {
            found.push((seed, violation));
        }
    }
    (found, total)
}

fn assert_sound(seeds: std::ops::Range<u64>) {
    let (found, coverage) = violations(Rule::Real, seeds.clone());
    println!("the real rule, seeds {seeds:?}: {} violations; {coverage:?}", found.len());
    assert!(
        found.is_empty(),
        "{} of {seeds:?} break a promise, first seed {}: {}",
        found.len(),
        found[0].0,
        found[0].1
    );
    coverage.assert_complete();
}

// The schedules are halved so that two threads can share the work.
#[test]
fn log_time_never_runs_fast_in_the_first_half_of_the_schedules() {
    assert_sound(0..SCHEDULES / 2);
}

#[test]
fn log_time_never_runs_fast_in_the_second_half_of_the_schedules() {
    assert_sound(SCHEDULES / 2..SCHEDULES);
}

fn assert_caught(rule: Rule) {
    let (found, _) = violations(rule, 0..SCHEDULES_PER_BROKEN_RULE);
    let first = found.first().unwrap_or_else(|| panic!("{SCHEDULES_PER_BROKEN_RULE} schedules did not catch {rule:?}"));
    println!("{rule:?}: caught in {} of {SCHEDULES_PER_BROKEN_RULE}, first by {}", found.len(), first.1);
}

#[test]
fn merging_a_running_clock_by_max_is_caught() {
    assert_caught(Rule::MaxMerge);
}

#[test]
fn stamping_before_an_own_entry_was_applied_is_caught() {
    assert_caught(Rule::StampBeforeOwnEntry);
}

#[test]
fn stamping_early_from_an_anchor_at_each_apply_is_caught() {
    assert_caught(Rule::AnchorOnApplied);
}

#[test]
fn accepting_a_stamp_of_another_reign_is_caught() {
    assert_caught(Rule::NoTermCheck);
}

#[test]
fn accepting_a_command_of_another_reign_without_its_time_is_caught() {
    assert_caught(Rule::WrongTermTakenWithoutItsTime);
}

#[test]
fn taking_a_new_licence_at_each_own_entry_is_caught() {
    assert_caught(Rule::LicenceAtEachEntry);
}

#[test]
fn keeping_a_licence_beyond_its_reign_is_caught() {
    assert_caught(Rule::LicenceKept);
}

#[test]
fn using_a_wall_clock_as_log_time_is_caught() {
    assert_caught(Rule::WallClock);
}

/// The guard of a lease allows for clocks that are wrong by 0.05 % on either side.
#[test]
fn holder_clocks_that_are_worse_than_the_guard_allows_are_caught() {
    let overlaps = (0..SCHEDULES_PER_BROKEN_RULE).filter(|seed| {
        let mut cluster = Cluster::new(Rule::Real, *seed);
        cluster.slow_holders_by(0.005);
        matches!(cluster.disturb(), Err(Violation::Overlap(_)))
    });
    let overlaps = overlaps.count();
    println!("holder clocks that are 0.5 % slow: caught in {overlaps} of {SCHEDULES_PER_BROKEN_RULE}");
    assert!(overlaps > 0);
}

/// Each broken rule is an edited copy of the real rule. If the unedited copy differed from the real rule, the failures
/// of the edited ones would show nothing.
#[test]
fn the_unedited_copy_behaves_like_the_real_rule() {
    for seed in 0..200 {
        let play = |rule| {
            let mut cluster = Cluster::new(rule, seed);
            assert!(cluster.disturb().and_then(|()| cluster.calm()).is_ok(), "seed {seed}");
            cluster.committed_stamps()
        };
        assert!(play(Rule::Copy) == play(Rule::Real), "seed {seed}");
    }
}
