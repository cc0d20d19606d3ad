//! The simulation as it goes on: the machines, and the faults that are injected.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use turmoil::Sim;

use crate::clients::Signals;
use crate::clock::micros;
use crate::invariants::Invariants;
use crate::network::host;
use crate::node::Machine;
use crate::plan::{Act, Event, Plan};
use crate::workload::history::{Fault, MILLI, Moment, SECOND, Sample};
use crate::workload::rest::REST_MAX;
use crate::workload::world::World;

/// How long the nodes may take to found a cluster.
const FOUNDING_MAX: Moment = 30 * SECOND;

/// Later than every moment of a run.
const FOREVER: Moment = Moment::MAX / 2;

/// How often the nodes' states are compared.
const LOOK_EVERY: Moment = 10 * MILLI;

/// How often the nodes' states are added to the history.
const SAMPLE_EVERY: Moment = 200 * MILLI;

/// A fault that lasts at this moment, and when it is undone.
struct ActiveFault {
    until: Moment,
    event: Event,
}

/// The simulation, and everything that is going on in it.
pub struct Stage {
    sim: Sim<'static>,
    pub machines: Vec<Arc<Machine>>,
    random: StdRng,
    plan: Plan,
    world: Arc<World>,
    /// The faults that last at this moment.
    active_faults: Vec<ActiveFault>,
    /// When a process that has ended is started again.
    revive_at: [Option<Moment>; 3],
    /// The nodes whose disk fails, or has failed since their process was started.
    failing: [bool; 3],
    pub invariants: Invariants,
    /// How many faults of each kind were injected.
    pub faults: BTreeMap<&'static str, usize>,
    /// Everything that went wrong, except for broken promises.
    pub trouble: Vec<String>,
    /// Whether the clients have ended.
    finished: bool,
}

impl Stage {
    pub fn new(sim: Sim<'static>, machines: Vec<Arc<Machine>>, random: StdRng, plan: Plan, world: Arc<World>) -> Stage {
        Stage {
            sim,
            machines,
            random,
            plan,
            world,
            active_faults: Vec::new(),
            revive_at: [None; 3],
            failing: [false; 3],
            invariants: Invariants::default(),
            faults: BTreeMap::new(),
            trouble: Vec::new(),
            finished: false,
        }
    }

    /// The simulated time.
    pub fn now(&self) -> Moment {
        micros(self.sim.elapsed())
    }

    /// Plays the plan to its end.
    pub fn play(&mut self, signals: &Signals, founded: &AtomicBool) {
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
            self.take_away(gone);
            signals.gone.store(true, Ordering::Relaxed);
        }
        if !self.go_on_until(100 * SECOND, |stage| stage.finished) {
            self.trouble.push("the clients do not come to rest".to_owned());
        }
    }

    /// Takes a node away for good.
    fn take_away(&mut self, gone: usize) {
        if self.random.random_bool(0.5) {
            self.end_process(gone, None);
        } else {
            // It receives messages, and its own are lost. It must not disturb the others.
            self.others(gone).iter().for_each(|other| self.sim.partition_oneway(host(gone), host(*other)));
        }
        let from = self.now();
        let cut = self.arrived_by(from);
        let (name, without_quorum) = (format!("n{} is gone", gone + 1), vec![gone]);
        let fault = Fault { name, from, undone: FOREVER, healed: Some(FOREVER), without_quorum, cut };
        self.world.recorder.record(|history| history.faults.push(fault));
    }

    /// When every message that is in flight at a moment has arrived.
    fn arrived_by(&self, moment: Moment) -> Moment {
        moment + 2 * self.plan.latency_max.as_micros() as Moment
    }

    /// Up to four acts, at the same time or one after the other. What they are is drawn when their time has come.
    fn write_script(&mut self) -> Vec<Act> {
        let count = self.random.random_range(1..=4);
        let mut acts = Vec::new();
        for _ in 0..count {
            let pause = if acts.is_empty() { 0 } else { self.random.random_range(0..3_000) * MILLI };
            acts.push(Act { pause, lasts: self.random.random_range(50 * MILLI..8 * SECOND), event: None });
        }
        acts
    }

    /// Plays a script, and waits until everything is undone and all nodes serve again.
    fn episode(&mut self, script: Vec<Act>) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut events = Vec::new();
        for Act { pause, lasts, event } in script {
            self.go_on_for(pause);
            let raft_leader = self.raft_leader();
            let event = event.unwrap_or_else(|| Event::draw(&mut self.random, raft_leader));
            *self.faults.entry(event.kind()).or_default() += 1;
            let from = self.now();
            let cut = self.arrived_by(from);
            let name = format!("{event:?}");
            faults.push(Fault { name, from, undone: from + lasts, healed: None, without_quorum: Vec::new(), cut });
            self.begin(&event);
            events.push(event.clone());
            self.active_faults.push(ActiveFault { until: from + lasts, event });
        }
        self.go_on_until(60 * SECOND, |stage| stage.active_faults.is_empty());
        let healed = self.go_on_until(REST_MAX, Stage::is_healthy).then(|| self.now());
        if healed.is_none() {
            let state: Vec<String> = self.machines.iter().map(|machine| machine.describe()).collect();
            self.trouble.push(format!("not all nodes served in time after {faults:?}: {state:?}"));
        }
        // Another fault of the network may let the cut node's messages through, or end the cut.
        let is_only_cut = events.iter().filter(|event| event.affects_the_network()).count() == 1;
        for (fault, event) in faults.iter_mut().zip(events) {
            fault.healed = healed;
            match event {
                Event::Isolate { place } if is_only_cut => fault.without_quorum = vec![place],
                // A clock that jumps must cost nothing, so it excuses nothing.
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

    /// Whether all processes run, and all nodes report that they can serve.
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
            Event::Stall { place, flush } => self.machines[*place].disk.set_stall(flush / MILLI),
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
            // Processes are started again in `step`. Wall clocks stay as they are.
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
            Event::Stall { place, .. } => self.machines[*place].disk.set_stall(0),
            Event::FailingDisk { place } => self.machines[*place].disk.set_failing(false),
        }
    }

    /// Kills a process, if it runs. It is started again at `revive_at`, if that is given.
    fn end_process(&mut self, place: usize, revive_at: Option<Moment>) {
        if self.revive_at[place].is_none() {
            self.machines[place].let_go();
            self.sim.crash(host(place));
            // If the process ended by itself just before, that end must not count as well.
            self.machines[place].take_end();
        }
        self.revive_at[place] = revive_at.max(self.revive_at[place]);
    }

    fn go_on_for(&mut self, duration: Moment) {
        let ends_at = self.now() + duration;
        self.go_on_until(duration + SECOND, |stage| stage.now() >= ends_at);
    }

    /// Lets time go on until the condition is true, or `longest` is over. Returns whether the condition became true.
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

    /// Lets time go on by one step, undoes the faults that are over, and looks after each machine.
    fn step(&mut self) {
        self.finished = self.sim.step().expect("neither nodes nor clients end with an error");
        let now = self.now();
        let (due, active): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.active_faults).into_iter().partition(|fault| fault.until <= now);
        self.active_faults = active;
        due.iter().for_each(|fault| self.undo(&fault.event));
        for place in 0..3 {
            self.notice_an_end(place, now);
            self.revive(place, now);
            self.look_at(place, now);
        }
    }

    /// If a process has ended by itself, has it started again after a while. Such an end must have a reason.
    fn notice_an_end(&mut self, place: usize, now: Moment) {
        let Some(why) = self.machines[place].take_end() else { return };
        let is_expected = why == "told to stop" || self.failing[place];
        if !is_expected {
            self.trouble.push(format!("n{} ended by itself: {why}", place + 1));
        }
        let rest = self.random.random_range(100..1_500) * MILLI;
        self.end_process(place, Some(now + rest));
    }

    /// Starts a process if its time has come.
    fn revive(&mut self, place: usize, now: Moment) {
        if self.revive_at[place].is_some_and(|at| at <= now) {
            self.revive_at[place] = None;
            // A disk failure that is over by now hit only the earlier process.
            self.failing[place] = self.active_faults.iter().any(|fault| fault.event == Event::FailingDisk { place });
            self.sim.bounce(host(place));
        }
    }

    /// Compares the state of a node with the others', and samples it, each in its interval.
    fn look_at(&mut self, place: usize, now: Moment) {
        if !now.is_multiple_of(LOOK_EVERY) {
            return;
        }
        let Some(consensus) = self.machines[place].consensus() else { return };
        self.invariants.look_at(place, &consensus, now);
        if now.is_multiple_of(SAMPLE_EVERY) {
            let position = consensus.replica().position();
            let applied_index = position.applied.map_or(0, |applied| applied.index);
            let sample = Sample { node: place, at: now, applied_index, state_digest: position.digest.to_string() };
            self.world.recorder.record(|history| history.samples.push(sample));
        }
    }
}
