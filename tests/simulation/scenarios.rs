//! Sequences of events that once showed a bug. They are played again, so that these bugs do not come back.
//!
//! In every scenario three nodes serve the usual clients for 2 s before the first event. A node is named by its place:
//! 0, 1 or 2. The seeds were chosen so that the events meet the right node at the right moment.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use quorate::consensus::ConsensusSettings;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::clients::Guest;
use crate::outcome::Outcome;
use crate::plan::{Act, Event, Plan};
use crate::run::run_plan;
use crate::workload::client::Client;
use crate::workload::crowd::Habits;
use crate::workload::history::{MILLI, Moment, SECOND};
use crate::workload::outside::sleep;
use crate::workload::watching::keep_watching;
use crate::workload::world::World;

type Scenario = fn() -> Outcome;

/// All scenarios, by the names that `QUORATE_SIMULATION_SEED` takes.
pub const ALL: [(&str, Scenario); 3] = [
    ("a_lost_answer_to_a_snapshot", a_lost_answer_to_a_snapshot),
    ("a_try_that_outlived_its_caller", a_try_that_outlived_its_caller),
    ("a_snapshot_told_to_all", a_snapshot_told_to_all),
];

/// For how long the nodes serve before the first event.
const BEFORE_THE_FIRST_EVENT: Moment = 2 * SECOND;

/// A raft follower was down and needs a snapshot, and its answer to the snapshot is lost. It was sent nothing else for
/// a minute.
fn a_lost_answer_to_a_snapshot() -> Outcome {
    const SEED: u64 = 1;
    const FOLLOWER: usize = 1;
    const OTHERS: [usize; 2] = [0, 2];
    // So long that the others purge log entries that this node still needs.
    const DOWN: Moment = 12 * SECOND;
    const CUT: Moment = 6 * SECOND;
    const CUT_BEFORE_IT_IS_BACK: Moment = 10 * MILLI;
    let script = vec![
        Act::at_once(restart_after(FOLLOWER, DOWN)),
        Act::after(DOWN - CUT_BEFORE_IT_IS_BACK, nothing_gets_through(FOLLOWER, OTHERS[0])).lasting(CUT),
        Act::at_once(nothing_gets_through(FOLLOWER, OTHERS[1])).lasting(CUT),
    ];
    sent_a_snapshot(play(script, SEED, None))
}

/// A caller with a key waits for a room at a node that has just started and is cut off, so that the node knows no raft
/// leader. The caller hangs up, wins the room at another node and resigns. The first node went on trying for this
/// caller, and won the room again for nobody.
fn a_try_that_outlived_its_caller() -> Outcome {
    const SEED: u64 = 2;
    const DOWN: Moment = 10 * MILLI;
    // 2 ms after the new process has started: one step of the simulation.
    const CUT_OFF_FROM: Moment = 12 * MILLI;
    const CUT_OFF_FOR: Moment = 3_500 * MILLI;
    let script = vec![
        Act::at_once(restart_after(CUT_OFF, DOWN)),
        Act::after(CUT_OFF_FROM, Event::Isolate { place: CUT_OFF }).lasting(CUT_OFF_FOR),
    ];
    play(script, SEED, Some(hang_up_and_come_again))
}

/// The node at which the caller waits first. With the scenario's seed it is not raft leader.
const CUT_OFF: usize = 1;

fn hang_up_and_come_again(world: Arc<World>) -> BoxFuture<'static, ()> {
    const AFTER_THE_CUT: Moment = 100 * MILLI;
    const WAIT_SECONDS: u64 = 10;
    const HANGS_UP_AFTER: Moment = 1_200 * MILLI;
    // The node is connected again by then, and has had time to do what it must not do.
    const LONG_ENOUGH: Moment = 6 * SECOND;
    async move {
        let room = world.rooms.len() - 1;
        sleep(BEFORE_THE_FIRST_EVENT + AFTER_THE_CUT).await;
        let mut client = Client::new(&world).at(CUT_OFF);
        let holding = client.campaign(room, WAIT_SECONDS, Some(HANGS_UP_AFTER)).await;
        let holding = holding.expect("no other client contends for this room");
        assert!(client.resign(&holding).await, "two nodes serve");
        sleep(LONG_ENOUGH).await;
    }
    .boxed()
}

/// A raft follower with a slow disk falls behind and is sent a snapshot. It is connected all the time, so its watch
/// streams go on. Watchers of a room that had been vacant all the time were told again that it was.
fn a_snapshot_told_to_all() -> Outcome {
    const SEED: u64 = 1;
    const FOLLOWER: usize = 1;
    const SLOW_FOR: Moment = 8 * SECOND;
    let script = vec![Act::at_once(Event::Stall { place: FOLLOWER, flush: SECOND }).lasting(SLOW_FOR)];
    sent_a_snapshot(play(script, SEED, Some(watch_a_vacant_room)))
}

fn watch_a_vacant_room(world: Arc<World>) -> BoxFuture<'static, ()> {
    const LONGER_THAN_THE_DISK_IS_SLOW: Duration = Duration::from_secs(12);
    async move {
        let room = world.rooms.len() - 1;
        let watching = (0..3).map(|node| keep_watching(world.clone(), node, room, Arc::default()));
        // The watchers never end by themselves.
        let _ = tokio::time::timeout(LONGER_THAN_THE_DISK_IS_SLOW, join_all(watching)).await;
    }
    .boxed()
}

/// The process is killed, and started again after this time.
fn restart_after(place: usize, down: Moment) -> Event {
    Event::Kill { places: vec![place], power_cut: false, down }
}

/// Messages from one node to another are lost. The other direction works.
fn nothing_gets_through(from: usize, to: usize) -> Event {
    Event::CutOneWay { from, to }
}

/// Runs a script on perfect machines. Nodes make snapshots often and keep few log entries.
fn play(script: Vec<Act>, seed: u64, guest: Option<Guest>) -> Outcome {
    let tuning = ConsensusSettings {
        heartbeat: Duration::from_millis(100),
        raft_election_timeout: Duration::from_millis(500),
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

/// Checks that a snapshot was sent, as the scenario needs it.
fn sent_a_snapshot(outcome: Outcome) -> Outcome {
    // Without this flag a seed does not decide everything, and a run may differ.
    if cfg!(tokio_unstable) {
        assert!(outcome.snapshots_sent > 0, "the scenario is about a snapshot");
    }
    outcome
}
