//! One seed: nodes, clients, faults, rest, verdict. All in one thread and in simulated time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sha2::{Digest, Sha256};
use turmoil::Sim;

use crate::invariants::Invariants;
use crate::network::{SimulatedOutside, host};
use crate::node::Machine;
use crate::plan::{Act, Event, Plan};
use crate::workload::amounts::Amounts;
use crate::workload::checker::{self, Verdict};
use crate::workload::clients::{Crowd, World, sleep};
use crate::workload::history::{Fault, History, MILLI, Moment, Rest, SECOND, Sample};
use crate::workload::rest::{REST_MAX, come_to_rest};

/// How long a cluster may take to be founded.
const FOUNDING_MAX: Moment = 30 * SECOND;
/// More simulated time than any seed takes; one that takes more does not come to an end.
const DURATION_MAX: Duration = Duration::from_secs(900);
/// In steps of this time goes on; what happens within one step has an order all the same.
const TICK: Duration = Duration::from_millis(2);
/// Later than anything.
const FOREVER: Moment = Moment::MAX / 2;
const LOOK_EVERY: Moment = 10 * MILLI;
const SAMPLE_EVERY: Moment = 200 * MILLI;

/// A machine that breaks what the promises rest on. Each must be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Disks that only pretend to flush the log.
    ForgetfulDisks,
    /// Clocks that run at one and a half times their speed.
    FastClocks,
}

impl Defect {
    pub fn named(name: &str) -> Defect {
        match name {
            "forgetful-disks" => Defect::ForgetfulDisks,
            "fast-clocks" => Defect::FastClocks,
            _ => panic!("no defect {name}"),
        }
    }
}

/// What came of a seed.
pub struct Outcome {
    pub seed: u64,
    pub simulated: Moment,
    pub faults: BTreeMap<&'static str, usize>,
    pub reigns: usize,
    pub starts: u64,
    /// Snapshots that a raft follower took over.
    pub snapshots_sent: u64,
    pub verdict: Verdict,
    /// Broken promises, of clients' histories and of nodes' states.
    pub violations: Vec<String>,
    /// What the clients saw, and what was done to the nodes.
    pub history: History,
    /// Of everything that was seen. The same seed gives the same.
    pub trace: String,
}

impl Outcome {
    /// One line that `scripts/simulate` can add up.
    pub fn line(&self) -> String {
        let verdict = &self.verdict;
        let late = |percent| verdict.late_percentile(percent).unwrap_or(0) / MILLI;
        serde_json::json!({
            "seed": self.seed,
            "trace": self.trace,
            "simulated_ms": self.simulated / MILLI,
            "operations": verdict.operations,
            "unknown": verdict.unknown,
            "ran_out": verdict.ran_out,
            "reigns": self.reigns,
            "starts": self.starts,
            "snapshots_sent": self.snapshots_sent,
            "violations": self.violations.len(),
            "late_ms": [late(50), late(99), late(100)],
            "outage_ms": verdict.longest_outage / MILLI,
            "gap_us": verdict.smallest_gap,
            "faults": self.faults,
        })
        .to_string()
    }
}

/// What the clients' side and the faults' side tell each other.
#[derive(Default)]
struct Signals {
    /// One node has been taken away for good.
    gone: AtomicBool,
    /// The clients have come to rest; a node may be taken away.
    rested: AtomicBool,
    rest: Mutex<Option<Rest>>,
}

/// Runs a seed to its end.
pub fn run(seed: u64, defect: Option<Defect>) -> Outcome {
    let mut random = StdRng::seed_from_u64(seed);
    let mut plan = Plan::draw(&mut random);
    if defect == Some(Defect::FastClocks) {
        plan.rates_ppm = [500_000; 3];
    }
    run_plan(seed, random, plan, defect, None)
}

/// A client with something special to do, beside the others. The last of the world's rooms is its own.
pub type Guest = fn(Arc<World>) -> BoxFuture<'static, ()>;

/// Runs a plan to its end; all that it leaves open follows from `random`.
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

    let mut stage = Stage {
        sim,
        machines,
        random,
        plan,
        world: world.clone(),
        doing: Vec::new(),
        revive_at: [None; 3],
        failing: [false; 3],
        invariants: Invariants::default(),
        faults: BTreeMap::new(),
        trouble: Vec::new(),
        finished: false,
    };
    stage.play(&signals, &founded);

    let mut history = world.recorder.take();
    history.rest = signals.rest.lock().unwrap().take().unwrap_or_default();
    history.rest.not_served.append(&mut stage.trouble);
    history.attempts.sort_by_key(|attempt| attempt.t0);
    let verdict = checker::check(&history);
    let mut violations: Vec<String> = verdict.violations.iter().map(ToString::to_string).collect();
    violations.append(&mut stage.invariants.violations);
    if violations.is_empty() {
        let weak = too_weak(&history, &verdict);
        violations.extend(weak.map(|why| format!("too weak to prove anything: {why}")));
    }
    Outcome {
        seed,
        simulated: micros(stage.sim.elapsed()),
        faults: stage.faults,
        reigns: stage.invariants.reigns(),
        starts: stage.machines.iter().map(|machine| machine.starts.load(Ordering::Relaxed)).sum(),
        snapshots_sent: stage.machines.iter().map(|machine| machine.snapshots_sent.load(Ordering::Relaxed)).sum(),
        verdict,
        violations,
        trace: trace(&history),
        history,
    }
}

/// Files in memory, where there is such a place: what a disk would cost is simulated.
fn memory_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder for the disks")
}

fn micros(duration: Duration) -> Moment {
    u64::try_from(duration.as_micros()).expect("simulations are short")
}

fn too_weak(history: &History, verdict: &Verdict) -> Option<String> {
    let Amounts { won, renewed, resigned, events, samples } = Amounts::of(history);
    // Where everybody takes their time, it may be that nobody holds a room for long enough to renew.
    let amounts = [won, renewed + resigned, events, samples, history.faults.len()];
    let too_few = amounts.contains(&0) || verdict.operations < 100;
    let Verdict { operations, unknown, .. } = verdict;
    (too_few || unknown * 4 > *operations).then(|| {
        format!(
            "won, renewed or resigned, events, samples, faults {amounts:?}, {operations} operations, {unknown} unknown"
        )
    })
}

fn trace(history: &History) -> String {
    let mut hash = Sha256::new();
    let mut add = |what: String| hash.update(what);
    history.attempts.iter().for_each(|attempt| add(format!("{attempt:?}")));
    history.stops.iter().for_each(|stop| add(format!("{stop:?}")));
    history.events.iter().for_each(|event| add(format!("{event:?}")));
    history.samples.iter().for_each(|sample| add(format!("{sample:?}")));
    history.faults.iter().for_each(|fault| add(format!("{fault:?}")));
    add(format!("{:?}", history.rest));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// All clients, on a host of their own.
async fn use_the_cluster(
    world: Arc<World>,
    signals: Arc<Signals>,
    founded: Arc<AtomicBool>,
    plan: Plan,
    guest: Option<Guest>,
) -> turmoil::Result {
    while !founded.load(Ordering::Relaxed) {
        sleep(10 * MILLI).await;
    }
    let mut crowd = Crowd::enter(&world, &plan.habits, 2);
    if let Some(guest) = guest {
        crowd.clients.spawn(guest(world.clone()));
    }
    while !world.is_closing() {
        sleep(10 * MILLI).await;
    }
    let in_time = crowd.leave().await;
    let mut rest = come_to_rest(&world, &[0, 1, 2], &crowd.open).await;
    if !in_time {
        rest.not_served.push("clients that do not end".to_owned());
    }
    signals.rested.store(true, Ordering::Relaxed);
    if let Some(gone) = plan.gone_at_last {
        while !signals.gone.load(Ordering::Relaxed) {
            sleep(10 * MILLI).await;
        }
        let others: Vec<usize> = (0..3).filter(|place| *place != gone).collect();
        let open = crowd.open.iter().enumerate().filter(|(number, _)| number % 3 != gone);
        let open: Vec<_> = open.map(|(_, stream)| stream.clone()).collect();
        let alone = come_to_rest(&world, &others, &open).await;
        rest.open_streams = alone.open_streams;
        rest.not_served.extend(alone.not_served.iter().map(|what| format!("without n{}: {what}", gone + 1)));
    }
    crowd.observers.shutdown().await;
    *signals.rest.lock().unwrap() = Some(rest);
    Ok(())
}

/// Something that is being done, and how it is undone.
struct Doing {
    until: Moment,
    event: Event,
}

/// The simulation, and what is being done to it.
struct Stage {
    sim: Sim<'static>,
    machines: Vec<Arc<Machine>>,
    random: StdRng,
    plan: Plan,
    world: Arc<World>,
    doing: Vec<Doing>,
    /// When a process that has ended is started again.
    revive_at: [Option<Moment>; 3],
    /// Whose disks fail, or have failed the process that still runs.
    failing: [bool; 3],
    invariants: Invariants,
    faults: BTreeMap<&'static str, usize>,
    trouble: Vec<String>,
    finished: bool,
}

impl Stage {
    fn now(&self) -> Moment {
        micros(self.sim.elapsed())
    }

    fn play(&mut self, signals: &Signals, founded: &AtomicBool) {
        if !self.go_on_until(FOUNDING_MAX, Stage::is_healthy) {
            self.trouble.push("no cluster was founded in time".to_owned());
            return;
        }
        founded.store(true, Ordering::Relaxed);
        self.go_on_for(2 * SECOND);
        let episodes = self.plan.episodes;
        for _ in 0..episodes {
            if !self.trouble.is_empty() {
                break;
            }
            let script = match self.plan.script.take() {
                Some(script) => script,
                None => self.write_script(),
            };
            let faults = self.episode(script);
            self.world.recorder.record(|history| history.faults.extend(faults));
            let pause = self.random.random_range(500..5_000) * MILLI;
            self.go_on_for(pause);
        }
        self.world.closing.store(true, Ordering::SeqCst);
        self.go_on_until(200 * SECOND, |stage| stage.finished || signals.rested.load(Ordering::Relaxed));
        if let Some(gone) = self.plan.gone_at_last {
            if self.random.random_bool(0.5) {
                self.end_process(gone, None);
            } else {
                // It hears the others, and is not heard: it must not disturb them.
                self.others(gone).iter().for_each(|other| self.sim.partition_oneway(host(gone), host(*other)));
            }
            let from = self.now();
            let cut = from + 2 * self.plan.latency_max.as_micros() as Moment;
            let (name, without_quorum) = (format!("n{} is gone", gone + 1), vec![gone]);
            let fault = Fault { name, from, undone: FOREVER, healed: Some(FOREVER), without_quorum, cut };
            self.world.recorder.record(|history| history.faults.push(fault));
            signals.gone.store(true, Ordering::Relaxed);
        }
        if !self.go_on_until(100 * SECOND, |stage| stage.finished) {
            self.trouble.push("the clients come to no rest".to_owned());
        }
    }

    /// Up to four things that are done at once or one after the other.
    fn write_script(&mut self) -> Vec<Act> {
        let count = self.random.random_range(1..=4);
        let mut acts = Vec::new();
        for _ in 0..count {
            let pause = if acts.is_empty() { 0 } else { self.random.random_range(0..3_000) * MILLI };
            acts.push(Act { pause, lasts: self.random.random_range(50 * MILLI..8 * SECOND), event: None });
        }
        acts
    }

    /// What is in the script is done; then all is undone, and has to heal.
    fn episode(&mut self, script: Vec<Act>) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut events = Vec::new();
        for Act { pause, lasts, event } in script {
            self.go_on_for(pause);
            let raft_leader = self.raft_leader();
            let event = event.unwrap_or_else(|| Event::draw(&mut self.random, raft_leader));
            *self.faults.entry(event.kind()).or_default() += 1;
            let from = self.now();
            // What was on its way when a node was cut off has arrived by then.
            let cut = from + 2 * self.plan.latency_max.as_micros() as Moment;
            let name = format!("{event:?}");
            faults.push(Fault { name, from, undone: from + lasts, healed: None, without_quorum: Vec::new(), cut });
            self.begin(&event);
            events.push(event.clone());
            self.doing.push(Doing { until: from + lasts, event });
        }
        self.go_on_until(60 * SECOND, |stage| stage.doing.is_empty());
        let healed = self.go_on_until(REST_MAX, Stage::is_healthy).then(|| self.now());
        if healed.is_none() {
            let state: Vec<String> = self.machines.iter().map(|machine| machine.describe()).collect();
            self.trouble.push(format!("not healed after {faults:?}: {state:?}"));
        }
        // Whatever else is done to the network may let through what was kept back, or end that.
        let only_cut = events.iter().filter(|event| event.is_of_the_network()).count() == 1;
        for (fault, event) in faults.iter_mut().zip(events) {
            fault.healed = healed;
            match event {
                Event::Isolate { place } if only_cut => fault.without_quorum = vec![place],
                // No excuse for anything that comes later.
                Event::WallJump { .. } => (fault.undone, fault.healed) = (fault.from, Some(fault.from)),
                _ => {}
            }
        }
        faults
    }

    fn raft_leader(&self) -> Option<usize> {
        let leads = |machine: &&Arc<Machine>| {
            machine.consensus().is_some_and(|consensus| consensus.status().role == "raft_leader")
        };
        self.machines.iter().find(leads).map(|machine| machine.place)
    }

    fn others(&self, place: usize) -> [usize; 2] {
        [(place + 1) % 3, (place + 2) % 3]
    }

    fn is_healthy(&self) -> bool {
        self.revive_at.iter().all(Option::is_none) && self.machines.iter().all(|machine| machine.is_ready())
    }

    fn begin(&mut self, event: &Event) {
        let now = self.now();
        match event {
            Event::Kill { places, power_cut, down } => {
                for &place in places {
                    self.end_process(place, Some(now + down));
                    if *power_cut {
                        self.machines[place].disk.cut_power(&mut self.random);
                    }
                }
            }
            Event::Restart { place } => self.machines[*place].tell_to_stop(),
            Event::Isolate { place } => {
                self.others(*place).iter().for_each(|other| self.sim.partition(host(*place), host(*other)));
            }
            Event::Cut { one, other } => self.sim.partition(host(*one), host(*other)),
            Event::CutOneWay { from, to } => self.sim.partition_oneway(host(*from), host(*to)),
            Event::Hold { one, other } => self.sim.hold(host(*one), host(*other)),
            Event::Slow { one, other, latency } => {
                self.sim.set_link_max_message_latency(host(*one), host(*other), Duration::from_micros(*latency));
            }
            Event::Suspend { place } => {
                if let Some(clock) = self.machines[*place].clock() {
                    clock.stop(now);
                }
                self.others(*place).iter().for_each(|other| self.sim.hold(host(*place), host(*other)));
            }
            Event::Stall { place, flush } => self.machines[*place].disk.stall(flush / MILLI),
            Event::FailingDisk { place } => {
                self.failing[*place] = true;
                self.machines[*place].disk.set_failing(true);
            }
            Event::WallJump { places, by_ms } => {
                for &place in places {
                    self.machines[place].wall_offset_ms.fetch_add(*by_ms, Ordering::Relaxed);
                }
            }
        }
    }

    fn undo(&mut self, event: &Event) {
        let now = self.now();
        match event {
            // Processes are started when their time comes; wall clocks stay where they are.
            Event::Kill { .. } | Event::Restart { .. } | Event::WallJump { .. } => {}
            Event::Isolate { place } => {
                self.others(*place).iter().for_each(|other| self.sim.repair(host(*place), host(*other)));
            }
            Event::Cut { one, other } => self.sim.repair(host(*one), host(*other)),
            Event::CutOneWay { from, to } => self.sim.repair_oneway(host(*from), host(*to)),
            Event::Hold { one, other } => self.sim.release(host(*one), host(*other)),
            Event::Slow { one, other, .. } => {
                self.sim.set_link_max_message_latency(host(*one), host(*other), self.plan.latency_max);
            }
            Event::Suspend { place } => {
                if let Some(clock) = self.machines[*place].clock() {
                    clock.go_on(now);
                }
                self.others(*place).iter().for_each(|other| self.sim.release(host(*place), host(*other)));
            }
            Event::Stall { place, .. } => self.machines[*place].disk.stall(0),
            Event::FailingDisk { place } => self.machines[*place].disk.set_failing(false),
        }
    }

    /// Ends a process without a word, if it runs.
    fn end_process(&mut self, place: usize, revive_at: Option<Moment>) {
        if self.revive_at[place].is_none() {
            self.machines[place].let_go();
            self.sim.crash(host(place));
            // A word that it may have said in its last moment.
            self.machines[place].take_end();
        }
        self.revive_at[place] = revive_at.max(self.revive_at[place]);
    }

    fn go_on_for(&mut self, duration: Moment) {
        let ends_at = self.now() + duration;
        self.go_on_until(duration + SECOND, |stage| stage.now() >= ends_at);
    }

    /// Whether it came to be, in the time that it was given.
    fn go_on_until(&mut self, longest: Moment, until: impl Fn(&Stage) -> bool) -> bool {
        let ends_at = self.now() + longest;
        while !until(self) {
            if self.now() >= ends_at || self.finished {
                return false;
            }
            self.step();
        }
        true
    }

    fn step(&mut self) {
        self.finished = self.sim.step().expect("neither nodes nor clients end with an error");
        let now = self.now();
        let (due, doing) = std::mem::take(&mut self.doing).into_iter().partition(|doing| doing.until <= now);
        self.doing = doing;
        let due: Vec<Doing> = due;
        due.iter().for_each(|doing| self.undo(&doing.event));
        for place in 0..3 {
            if let Some(why) = self.machines[place].take_end() {
                let is_expected = why == "told to stop" || self.failing[place];
                if !is_expected {
                    self.trouble.push(format!("n{} ended by itself: {why}", place + 1));
                }
                let rest = self.random.random_range(100..1_500) * MILLI;
                self.end_process(place, Some(now + rest));
            }
            if self.revive_at[place].is_some_and(|at| at <= now) {
                self.revive_at[place] = None;
                // Whatever has failed by now has failed the process before.
                self.failing[place] = self.doing.iter().any(|doing| doing.event == Event::FailingDisk { place });
                self.sim.bounce(host(place));
            }
            if now.is_multiple_of(LOOK_EVERY)
                && let Some(consensus) = self.machines[place].consensus()
            {
                self.invariants.look_at(place, &consensus, now);
                if now.is_multiple_of(SAMPLE_EVERY) {
                    let position = consensus.replica().position();
                    let applied_index = position.applied.map_or(0, |applied| applied.index);
                    let sample =
                        Sample { node: place, at: now, applied_index, state_digest: position.digest.to_string() };
                    self.world.recorder.record(|history| history.samples.push(sample));
                }
            }
        }
    }
}
