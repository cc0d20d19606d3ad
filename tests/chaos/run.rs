//! One run: starts nodes and clients, injects faults, lets everything come to rest, and checks the history.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::faults::{Scenario, Strike, strike};
use crate::lab::Lab;
use crate::leaks::Search;
use crate::outside::{RealOutside, now};
use crate::panics;
use crate::workload::amounts::Amounts;
use crate::workload::checker::outages::{is_served, longest_outage};
use crate::workload::checker::{self, Verdict};
use crate::workload::crowd::{Crowd, Habits};
use crate::workload::history::{Answer, Attempt, Fault, History, MILLI, Moment, SECOND, Sample, Seen};
use crate::workload::outside::sleep;
use crate::workload::rest::{REST_MAX, come_to_rest, report};
use crate::workload::world::{KEY_CANARY, World};

const ROOMS: usize = 8;
/// If more outcomes than this remain unknown, the run proves too little.
const UNKNOWN_PERCENT_MAX: usize = 20;

/// What a run has shown.
pub struct Outcome {
    pub scenario: Scenario,
    pub seed: u64,
    pub faults: usize,
    pub raft_elections: u64,
    /// The longest time in which no change was acknowledged to any client.
    pub longest_without_change: Moment,
    pub verdict: Verdict,
}

impl Outcome {
    /// A row of the table below [`HEAD`].
    pub fn row(&self) -> String {
        let verdict = &self.verdict;
        let millis = |value: Option<Moment>| value.map_or("-".to_owned(), |value| (value / MILLI).to_string());
        let gap = verdict.smallest_gap.map_or("-".to_owned(), |gap| format!("{:.1}", gap as f64 / 1_000.0));
        let late = [50, 99, 100].map(|percent| millis(verdict.late_percentile(percent))).join(" / ");
        format!(
            "| {} | {} | {} | {} | {} | {:.2} % | {} / {} | {} | {} | {} | {} |",
            self.scenario.name(),
            self.seed,
            self.faults,
            self.raft_elections,
            verdict.operations,
            100.0 * verdict.unknown as f64 / verdict.operations.max(1) as f64,
            verdict.longest_outage / MILLI,
            self.longest_without_change / MILLI,
            gap,
            late,
            verdict.ran_out,
            verdict.violations.len()
        )
    }
}

pub const HEAD: &str = "\
| scenario | seed | faults | raft elections | operations | unknown | longest without an answer / a change, ms | smallest exclusion gap, ms | late expiry p50 / p99 / max, ms | holders that ran out | violations |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

/// What has been noticed while faults were injected, beside what the clients saw.
#[derive(Default)]
struct Notes {
    faults: usize,
    raft_elections: u64,
    /// Broken promises that do not end the run.
    broken: Vec<String>,
    /// Everything else that is wrong. No further fault is injected then.
    trouble: Vec<String>,
}

/// Runs a scenario for this long, and checks its history.
///
/// # Errors
/// The lab could not be set up.
pub async fn run(scenario: Scenario, seed: u64, length: Moment) -> Result<Outcome, String> {
    // Small numbers, so that nodes make snapshots and purge log entries in a short run.
    let args = ["--snapshot-every", "700", "--log-entries-kept", "1000"];
    let mut lab = Lab::start(scenario.gear(), &args).await?;
    let world = World::new(RealOutside::new(lab.urls()), 3, ROOMS + 1, seed);
    let habits = Habits { waits_seconds: vec![0, 0, 10], rest_max: SECOND };
    let mut crowd = Crowd::enter(&world, &habits, 3);
    for node in 0..3 {
        crowd.observers.spawn(keep_sampling(world.clone(), node));
    }

    let began = now();
    let mut notes = inject_faults(&mut lab, &world, scenario, seed, began + length).await;
    sleep(2 * SECOND).await;
    let closed = now();
    let history = finish(&mut lab, &world, &mut crowd, &mut notes).await;

    // Only until then: clients that have been told to finish send few requests.
    let longest = |is_one| longest_outage(&history, is_one, began, closed);
    let verdict = Verdict { longest_outage: longest(is_served), ..checker::check(&history) };
    let longest_without_change = longest(is_changed);
    if !verdict.violations.is_empty() {
        explain(&history, &verdict, &lab, &format!("{}-{seed}", scenario.name()));
    }
    assert_enough_happened(&history, &verdict, notes.faults);
    let Notes { faults, raft_elections, .. } = notes;
    Ok(Outcome { scenario, seed, faults, raft_elections, longest_without_change, verdict })
}

/// Injects one fault after the other until `ends_at`, or until something is wrong.
async fn inject_faults(lab: &mut Lab, world: &Arc<World>, scenario: Scenario, seed: u64, ends_at: Moment) -> Notes {
    let mut random = StdRng::seed_from_u64(seed);
    let mut notes = Notes::default();
    while now() < ends_at && notes.trouble.is_empty() {
        sleep(random.random_range(500..4_000) * MILLI).await;
        let raft_term_before = lab.raft_term().await;
        let strike = strike(lab, scenario, &mut random).await;
        let raft_term_after = lab.raft_term().await;
        let mut outage = 0;
        world.recorder.record(|history| {
            outage = longest_outage(history, is_changed, strike.fault.from, now());
        });
        let took = strike.fault.healed.map(|healed| healed.saturating_sub(strike.fault.undone) / MILLI);
        println!(
            "{:>7} ms left: {}; healed after {took:?} ms; {} raft terms more; no change for {} ms",
            ends_at.saturating_sub(now()) / MILLI,
            strike.fault.name,
            raft_term_after.saturating_sub(raft_term_before),
            outage / MILLI
        );
        let is_excuse = strike.is_excuse;
        let fault = notes.add(strike, raft_term_before, raft_term_after, outage);
        if is_excuse {
            world.recorder.record(|history| history.faults.push(fault));
        }
        notes.trouble.extend(ended_by_itself(lab));
        notes.trouble.extend(panics::trouble());
    }
    notes
}

impl Notes {
    /// Notes one fault and everything that is wrong with its effect.
    fn add(&mut self, strike: Strike, raft_term_before: u64, raft_term_after: u64, outage: Moment) -> Fault {
        let Strike { fault, needs_raft_election, missed, outage_max, .. } = strike;
        let raft_elections = raft_term_after.saturating_sub(raft_term_before);
        self.faults += 1;
        self.raft_elections += raft_elections;
        if raft_term_after < raft_term_before {
            let what = format!("raft term {raft_term_before}, then {raft_term_after}, by {}", fault.name);
            self.broken.push(format!("a vote was lost: {what}"));
        }
        if outage > outage_max {
            self.broken.push(format!("no change was acknowledged for {} ms during: {}", outage / MILLI, fault.name));
        }
        if fault.healed.is_none() {
            self.trouble.push(format!("nodes do not serve {} s after: {}", REST_MAX / SECOND, fault.name));
        }
        let no_election = needs_raft_election && raft_elections == 0;
        if let Some(why) = missed.or_else(|| no_election.then(|| "no raft election".to_owned())) {
            self.trouble.push(format!("a fault without effect: {}: {why}", fault.name));
        }
        fault
    }
}

/// Ends the clients, lets everything come to rest, and returns the whole history.
async fn finish(lab: &mut Lab, world: &Arc<World>, crowd: &mut Crowd, notes: &mut Notes) -> History {
    world.closing.store(true, Ordering::SeqCst);
    if !crowd.leave().await {
        notes.trouble.push("clients do not end".to_owned());
    }
    let mut rest = come_to_rest(world, &[0, 1, 2], &crowd.open).await;
    crowd.observers.shutdown().await;
    notes.trouble.extend(ended_by_itself(lab));
    notes.trouble.extend(panics::trouble());
    rest.not_served.extend(notes.trouble.drain(..).chain(notes.broken.drain(..)));
    let mut search = Search::default();
    world.secrets.lock().unwrap().iter().for_each(|token| search.add_token(token));
    search.add(KEY_CANARY.as_bytes());
    search.add(b"canary-secret");
    rest.leaks = lab.leaks(&search);
    let mut history = world.recorder.take();
    history.rest = rest;
    history.attempts.sort_by_key(|attempt| attempt.sent_at);
    history
}

/// A history in which little happened proves little.
fn assert_enough_happened(history: &History, verdict: &Verdict, faults: usize) {
    let amounts = Amounts::of(history);
    println!("{amounts:?}");
    let Amounts { won, renewed, resigned, events, samples } = amounts;
    let each = [won, renewed, resigned, events, samples].into_iter().all(|count| count > 10);
    let enough = each && verdict.operations > 100 && verdict.unknown * 100 <= verdict.operations * UNKNOWN_PERCENT_MAX;
    assert!(enough && faults > 0, "too weak to prove anything: {faults} faults, {verdict:?}");
}

/// The nodes that have ended without being told to.
fn ended_by_itself(lab: &mut Lab) -> Vec<String> {
    let ended = |place| lab.ended(place).map(|code| format!("n{} ended by itself with {code:?}", place + 1));
    (0..3).filter_map(ended).collect()
}

/// Whether the answer proves that a quorum has flushed a log entry for it.
fn is_changed(attempt: &Attempt) -> bool {
    matches!(attempt.answer, Answer::Ok(Seen::Won { .. } | Seen::Resigned { .. }))
}

/// Prints the violations, and keeps history and logs for the search for the bug.
fn explain(history: &History, verdict: &Verdict, lab: &Lab, name: &str) {
    for violation in verdict.violations.iter().take(10) {
        println!("VIOLATION: {violation}");
    }
    println!("{}", lab.logs());
    let folder = std::env::temp_dir().join(format!("quorate-chaos-{name}"));
    let written =
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join("history.txt"), history.text()));
    for node in &lab.nodes {
        let log = format!("{}.log", node.name);
        let _ = std::fs::copy(lab.folder.path().join(&log), folder.join(&log));
    }
    println!("history and logs: {} ({written:?})", folder.display());
}

/// Records what a node reports about itself, again and again.
async fn keep_sampling(world: Arc<World>, node: usize) {
    loop {
        if let Some((applied_index, state_digest)) = report(&world, node).await {
            let sample = Sample { node, at: now(), applied_index, state_digest };
            world.recorder.record(|history| history.samples.push(sample));
        }
        sleep(200 * MILLI).await;
    }
}
