//! The nodes, and what is done to them.

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

/// How long a cluster may take to be founded.
const FOUNDING_MAX: Moment = 30 * SECOND;

/// Later than anything.
const FOREVER: Moment = Moment::MAX / 2;

const LOOK_EVERY: Moment = 10 * MILLI;

const SAMPLE_EVERY: Moment = 200 * MILLI;

/// Something that is being done, and how it is undone.
pub struct Doing {
    until: Moment,
    event: Event,
}

/// The simulation, and what is being done to it.
pub struct Stage {
    pub sim: Sim<'static>,
    pub machines: Vec<Arc<Machine>>,
    pub random: StdRng,
    pub plan: Plan,
    pub world: Arc<World>,
    pub doing: Vec<Doing>,
    /// When a process that has ended is started again.
    pub revive_at: [Option<Moment>; 3],
    /// Whose disks fail, or have failed the process that still runs.
    pub failing: [bool; 3],
    pub invariants: Invariants,
    pub faults: BTreeMap<&'static str, usize>,
    pub trouble: Vec<String>,
    pub finished: bool,
}

impl Stage {
    fn now(&self) -> Moment {
        micros(self.sim.elapsed())
    }

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
