//! The exact sequence of events of each bug that was found, so that it stays found.

use std::time::Duration;

use quorate::config::RaftTuning;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::history::{MILLI, SECOND};
use crate::plan::{Act, Event, Plan};
use crate::run::{Outcome, run_plan};

type Scenario = fn() -> Outcome;

/// By name, as they are run.
pub const ALL: [(&str, Scenario); 1] = [("a_lost_answer_to_a_snapshot", a_lost_answer_to_a_snapshot)];

fn act(pause: u64, lasts: u64, event: Event) -> Act {
    Act { pause, lasts, event: Some(event) }
}

fn play(script: Vec<Act>, seed: u64) -> Outcome {
    let raft_election_timeout = Duration::from_millis(500);
    let tuning = RaftTuning {
        heartbeat: Duration::from_millis(100),
        raft_election_timeout,
        snapshot_every: 15,
        log_entries_kept: 10,
    };
    let plan = Plan {
        tuning,
        rates_ppm: [0; 3],
        latency_max: Duration::from_millis(2),
        wait_seconds: 2,
        episodes: 1,
        script: Some(script),
        gone_at_last: None,
    };
    run_plan(seed, StdRng::seed_from_u64(seed), plan, None)
}

/// A raft follower that was away needs a snapshot, and its answer to that is lost. It was sent nothing else for a
/// minute.
fn a_lost_answer_to_a_snapshot() -> Outcome {
    let away = Event::Kill { places: vec![1], power_cut: false, down: 12 * SECOND };
    let mut script = vec![act(0, 0, away)];
    for to in [0, 2] {
        let pause = if to == 0 { 12 * SECOND - 10 * MILLI } else { 0 };
        script.push(act(pause, 6 * SECOND, Event::CutOneWay { from: 1, to }));
    }
    play(script, 1)
}
