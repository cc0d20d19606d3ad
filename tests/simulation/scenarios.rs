//! The exact sequence of events of each bug that was found, so that it stays found.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use quorate::config::RaftTuning;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::clients::Guest;
use crate::outcome::Outcome;
use crate::plan::{Act, Event, Plan};
use crate::run::run_plan;
use crate::workload::client::Client;
use crate::workload::crowd::Habits;
use crate::workload::history::{MILLI, SECOND};
use crate::workload::outside::sleep;
use crate::workload::watching::keep_watching;
use crate::workload::world::World;

type Scenario = fn() -> Outcome;

/// By name, as they are run.
pub const ALL: [(&str, Scenario); 3] = [
    ("a_lost_answer_to_a_snapshot", a_lost_answer_to_a_snapshot),
    ("a_try_that_outlived_its_caller", a_try_that_outlived_its_caller),
    ("a_snapshot_told_to_all", a_snapshot_told_to_all),
];

fn act(pause: u64, lasts: u64, event: Event) -> Act {
    Act { pause, lasts, event: Some(event) }
}

fn play(script: Vec<Act>, seed: u64, guest: Option<Guest>) -> Outcome {
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
        rooms: 4,
        habits: Habits { waits_seconds: vec![0, 2, 2], rest_max: SECOND },
        episodes: 1,
        script: Some(script),
        gone_at_last: None,
    };
    run_plan(seed, StdRng::seed_from_u64(seed), plan, None, guest)
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
    sent_a_snapshot(play(script, 1, None))
}

fn sent_a_snapshot(outcome: Outcome) -> Outcome {
    // Otherwise chance has a say in it.
    if cfg!(tokio_unstable) {
        assert!(outcome.snapshots_sent > 0, "the scenario is about a snapshot");
    }
    outcome
}

/// A caller with a key waits at a node that has just been started and is cut off, so that it knows no raft leader; hangs
/// up, wins elsewhere and resigns. The first node went on trying for it, and won the room again, for nobody.
fn a_try_that_outlived_its_caller() -> Outcome {
    let restart = Event::Kill { places: vec![CUT_OFF], power_cut: false, down: 10 * MILLI };
    let script = vec![act(0, 0, restart), act(12 * MILLI, 3_500 * MILLI, Event::Isolate { place: CUT_OFF })];
    play(script, 2, Some(hang_up_and_come_again))
}

/// Not the raft leader, with that seed.
const CUT_OFF: usize = 1;

fn hang_up_and_come_again(world: Arc<World>) -> BoxFuture<'static, ()> {
    async move {
        let room = world.rooms.len() - 1;
        // The node is cut off two seconds after the foundation.
        sleep(2_100 * MILLI).await;
        let mut client = Client::new(&world).at(CUT_OFF);
        let holding = client.campaign(room, 10, Some(1_200 * MILLI)).await.expect("nobody else wants this room");
        assert!(client.resign(&holding).await, "two nodes serve");
        sleep(6 * SECOND).await;
    }
    .boxed()
}

/// A raft follower with a slow disk is sent a snapshot while it is in touch, so that its streams go on. Watchers of a room
/// that had been vacant all the time were told again that it was.
fn a_snapshot_told_to_all() -> Outcome {
    let script = vec![act(0, 8 * SECOND, Event::Stall { place: 1, flush: SECOND })];
    sent_a_snapshot(play(script, 1, Some(watch_a_vacant_room)))
}

fn watch_a_vacant_room(world: Arc<World>) -> BoxFuture<'static, ()> {
    async move {
        let room = world.rooms.len() - 1;
        let watching = (0..3).map(|node| keep_watching(world.clone(), node, room, Arc::default()));
        // Watching has no end of its own.
        let _ = tokio::time::timeout(Duration::from_secs(12), join_all(watching)).await;
    }
    .boxed()
}
