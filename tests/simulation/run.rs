//! One run: starts nodes and clients, injects faults, and checks the history. All of it in one thread and in simulated
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::clients::{Guest, Signals, use_the_cluster};
use crate::defect::Defect;
use crate::network::{SimulatedOutside, host};
use crate::node::Machine;
use crate::outcome::{Outcome, too_weak, trace};
use crate::plan::Plan;
use crate::stage::Stage;
use crate::workload::checker;
use crate::workload::history::History;
use crate::workload::world::World;

/// More simulated time than any run needs. A run that takes longer hangs.
const DURATION_MAX: Duration = Duration::from_secs(900);
/// Simulated time goes on in steps of this length. What happens within one step still has an order.
const TICK: Duration = Duration::from_millis(2);

/// Runs a seed.
pub fn run(seed: u64, defect: Option<Defect>) -> Outcome {
    let mut random = StdRng::seed_from_u64(seed);
    let mut plan = Plan::draw(&mut random);
    if defect == Some(Defect::FastClocks) {
        plan.rates_ppm = [500_000; 3];
    }
    run_plan(seed, random, plan, defect, None)
}

/// Runs a plan. Everything that the plan leaves open follows from `random`.
pub fn run_plan(seed: u64, mut random: StdRng, plan: Plan, defect: Option<Defect>, guest: Option<Guest>) -> Outcome {
    quorate::random::seed_thread(random.random());
    let folder = memory_folder();
    let machines: Vec<Arc<Machine>> = (0..3)
        .map(|place| {
            let root = folder.path().join(host(place));
            let forgets = defect == Some(Defect::ForgetfulDisks);
            Arc::new(Machine::new(place, root, plan.rates_ppm[place], forgets, plan.tuning.clone(), random.random()))
        })
        .collect();
    let mut sim = turmoil::Builder::new()
        .rng_seed(random.random())
        .enable_random_order()
        .simulation_duration(DURATION_MAX)
        .tick_duration(TICK)
        .min_message_latency(Duration::from_micros(200))
        .max_message_latency(plan.latency_max)
        .tcp_capacity(4_096)
        .build();
    for machine in &machines {
        let machine = machine.clone();
        sim.host(host(machine.place), move || machine.clone().run());
    }
    let world = World::new(SimulatedOutside, 3, plan.rooms + 1, random.random());
    let signals = Arc::new(Signals::default());
    let founded = Arc::new(AtomicBool::new(false));
    sim.client("clients", use_the_cluster(world.clone(), signals.clone(), founded.clone(), plan.clone(), guest));

    let mut stage = Stage::new(sim, machines, random, plan, world.clone());
    stage.play(&signals, &founded);

    let mut history = world.recorder.take();
    history.rest = signals.rest.lock().unwrap().take().unwrap_or_default();
    history.attempts.sort_by_key(|attempt| attempt.sent_at);
    outcome(seed, history, stage)
}

/// Checks what a run has shown.
fn outcome(seed: u64, mut history: History, mut stage: Stage) -> Outcome {
    history.rest.not_served.append(&mut stage.trouble);
    let verdict = checker::check(&history);
    let mut violations: Vec<String> = verdict.violations.iter().map(ToString::to_string).collect();
    violations.append(&mut stage.invariants.violations);
    if violations.is_empty() {
        let weak = too_weak(&history, &verdict);
        violations.extend(weak.map(|why| format!("too weak to prove anything: {why}")));
    }
    Outcome {
        seed,
        simulated: stage.now(),
        reigns: stage.invariants.reigns(),
        starts: stage.machines.iter().map(|machine| machine.starts.load(Ordering::Relaxed)).sum(),
        snapshots_sent: stage.machines.iter().map(|machine| machine.snapshots_sent.load(Ordering::Relaxed)).sum(),
        faults: stage.faults,
        verdict,
        violations,
        trace: trace(&history),
        history,
    }
}

/// A folder in memory, if this machine has one. What a disk costs is simulated, so it need not cost real time.
fn memory_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder for the disks")
}
