//! Log time never runs faster than real time, whatever happens to raft leaders and clocks.
//!
//! A schedule is a few hundred random events among three nodes (`cluster`): the node's parts under test, `Rooms`
//! and `LeaseClock`, are the real ones; raft, clocks and network are a model. While entries commit, `watch`
//! holds them against real time. The same schedules must show what is wrong with each broken rule (`rules`):
//! a harness that can't catch them proves nothing about the real one.

mod cluster;
mod rules;
mod simulated_clock;
mod watch;

use cluster::Cluster;
use rules::Rule;
use watch::{Coverage, Violation};

/// Enough to catch each broken rule many times over, and short enough for every test run.
const SCHEDULES: u64 = 4_000;
const SCHEDULES_PER_BROKEN_RULE: u64 = 400;

/// Plays the schedule of one seed.
fn play(rule: Rule, seed: u64) -> (Result<(), Violation>, Coverage) {
    let mut cluster = Cluster::new(rule, seed);
    let result = cluster.disturb().and_then(|()| cluster.calm());
    (result, cluster.coverage())
}

/// Plays many schedules, and says which seeds were violations.
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
    assert!(found.is_empty(), "{} of {seeds:?} violate; the first: seed {}: {}", found.len(), found[0].0, found[0].1);
    coverage.assert_complete();
}

// Two halves, so that two threads can share the work.
#[test]
fn log_time_is_never_fast_in_the_first_half_of_the_schedules() {
    assert_sound(0..SCHEDULES / 2);
}

#[test]
fn log_time_is_never_fast_in_the_second_half_of_the_schedules() {
    assert_sound(SCHEDULES / 2..SCHEDULES);
}

fn assert_caught(rule: Rule) {
    let (found, _) = violations(rule, 0..SCHEDULES_PER_BROKEN_RULE);
    let first = found.first().unwrap_or_else(|| panic!("{rule:?} got through {SCHEDULES_PER_BROKEN_RULE} schedules"));
    println!("{rule:?}: caught in {} of {SCHEDULES_PER_BROKEN_RULE}, first by {}", found.len(), first.1);
}

#[test]
fn a_running_clock_that_is_merged_by_max_is_caught() {
    assert_caught(Rule::MaxMerge);
}

#[test]
fn a_stamp_before_an_own_entry_was_applied_is_caught() {
    assert_caught(Rule::StampBeforeOwnEntry);
}

#[test]
fn an_anchor_at_each_apply_and_a_stamp_before_an_own_entry_is_caught() {
    assert_caught(Rule::AnchorOnApplied);
}

#[test]
fn a_stamp_of_another_reign_that_is_taken_is_caught() {
    assert_caught(Rule::NoTermCheck);
}

#[test]
fn a_command_of_another_reign_that_is_taken_without_its_time_is_caught() {
    assert_caught(Rule::WrongTermTakenWithoutItsTime);
}

#[test]
fn a_licence_that_is_taken_anew_at_each_own_entry_is_caught() {
    assert_caught(Rule::LicenceAtEachEntry);
}

#[test]
fn a_licence_that_outlives_its_reign_is_caught() {
    assert_caught(Rule::LicenceKept);
}

#[test]
fn a_wall_clock_as_log_time_is_caught() {
    assert_caught(Rule::WallClock);
}

/// The guard of a lease is made for clocks that are 0.05 % wrong on either side.
#[test]
fn holders_with_worse_clocks_than_the_guard_allows_for_are_caught() {
    let overlaps = (0..SCHEDULES_PER_BROKEN_RULE).filter(|seed| {
        let mut cluster = Cluster::new(Rule::Real, *seed);
        cluster.slow_holders_by(0.005);
        matches!(cluster.disturb(), Err(Violation::Overlap(_)))
    });
    let overlaps = overlaps.count();
    println!("holders that are 0.5 % slow: caught in {overlaps} of {SCHEDULES_PER_BROKEN_RULE}");
    assert!(overlaps > 0);
}

/// The broken rules are edits of a copy of the real one. Unless the copy is true, their failures say nothing.
#[test]
fn the_copy_that_the_broken_rules_are_edits_of_behaves_like_the_real_rule() {
    for seed in 0..200 {
        let play = |rule| {
            let mut cluster = Cluster::new(rule, seed);
            assert!(cluster.disturb().and_then(|()| cluster.calm()).is_ok(), "seed {seed}");
            cluster.committed_stamps()
        };
        assert!(play(Rule::Copy) == play(Rule::Real), "seed {seed}");
    }
}
