//! One run: nodes, clients, faults, rest, verdict.

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
use crate::workload::history::{Answer, Attempt, History, MILLI, Moment, SECOND, Sample, Seen};
use crate::workload::outside::sleep;
use crate::workload::rest::{REST_MAX, come_to_rest, report};
use crate::workload::world::{KEY_CANARY, World};

const ROOMS: usize = 8;
/// A run in which more than this remains unknown proves too little.
const UNKNOWN_PERCENT_MAX: usize = 20;

pub struct Outcome {
    pub scenario: Scenario,
    pub seed: u64,
    pub faults: usize,
    pub raft_elections: u64,
    /// The longest time in which no change was acknowledged to anybody.
    pub unchanged: Moment,
    pub verdict: Verdict,
}

impl Outcome {
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
            self.unchanged / MILLI,
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

/// Runs a scenario for so long, and checks its history. An error is that the lab is broken.
pub async fn run(scenario: Scenario, seed: u64, length: Moment) -> Result<Outcome, String> {
    // Small numbers, so that snapshots and the end of old log entries are part of it.
    let args = ["--snapshot-every", "700", "--log-entries-kept", "1000"];
    let mut lab = Lab::start(scenario.gear(), &args).await?;
    let world = World::new(RealOutside::new(lab.urls()), 3, ROOMS + 1, seed);
    let habits = Habits { waits_seconds: vec![0, 0, 10], rest_max: SECOND };
    let mut crowd = Crowd::enter(&world, &habits, 3);
    for node in 0..3 {
        crowd.observers.spawn(keep_sampling(world.clone(), node));
    }

    let mut random = StdRng::seed_from_u64(seed);
    let began = now();
    let ends_at = began + length;
    let mut faults = 0;
    let (mut trouble, mut broken) = (Vec::new(), Vec::new());
    let mut raft_elections_in_all = 0;
    while now() < ends_at && trouble.is_empty() {
        sleep(random.random_range(500..4_000) * MILLI).await;
        let raft_term = lab.raft_term().await;
        let Strike { fault, elects, missed, outage_max, excuse } = strike(&mut lab, scenario, &mut random).await;
        faults += 1;
        let left = ends_at.saturating_sub(now()) / MILLI;
        let took = fault.healed.map(|healed| healed.saturating_sub(fault.undone) / MILLI);
        let raft_term_after = lab.raft_term().await;
        if raft_term_after < raft_term {
            broken.push(format!("a vote was lost: raft term {raft_term}, then {raft_term_after}, by {}", fault.name));
        }
        let raft_elections = raft_term_after.saturating_sub(raft_term);
        let mut outage = 0;
        world.recorder.record(|history| {
            outage = longest_outage(history, is_changed, fault.from, now());
        });
        raft_elections_in_all += raft_elections;
        println!(
            "{left:>7} ms left: {}; healed after {took:?} ms; {raft_elections} raft terms more; no change for {} ms",
            fault.name,
            outage / MILLI
        );
        if outage > outage_max {
            broken.push(format!("nothing was changed for {} ms during: {}", outage / MILLI, fault.name));
        }
        if fault.healed.is_none() {
            trouble.push(format!("nodes that do not serve {} s after: {}", REST_MAX / SECOND, fault.name));
        }
        let missed = missed.or_else(|| (elects && raft_elections == 0).then(|| "no raft election".to_owned()));
        if let Some(why) = missed {
            trouble.push(format!("a fault that struck nothing: {}: {why}", fault.name));
        }
        if excuse {
            world.recorder.record(|history| history.faults.push(fault));
        }
        trouble.extend(ended_by_itself(&mut lab));
        trouble.extend(panics::trouble());
    }
    sleep(2 * SECOND).await;
    let closed = now();
    world.closing.store(true, Ordering::SeqCst);
    if !crowd.leave().await {
        trouble.push("clients that do not end".to_owned());
    }
    let mut rest = come_to_rest(&world, &[0, 1, 2], &crowd.open).await;
    crowd.observers.shutdown().await;
    trouble.extend(ended_by_itself(&mut lab));
    trouble.extend(panics::trouble());
    rest.not_served.extend(trouble.into_iter().chain(broken));
    let mut search = Search::default();
    world.secrets.lock().unwrap().iter().for_each(|token| search.add_token(token));
    search.add(KEY_CANARY.as_bytes());
    search.add(b"canary-secret");
    rest.leaks = lab.leaks(&search);
    let mut history = world.recorder.take();
    history.rest = rest;
    history.attempts.sort_by_key(|attempt| attempt.t0);
    // Clients that have been told to end ask for little.
    let longest = |is_one| longest_outage(&history, is_one, began, closed);
    let verdict = Verdict { longest_outage: longest(is_served), ..checker::check(&history) };
    let unchanged = longest(is_changed);
    if !verdict.violations.is_empty() {
        explain(&history, &verdict, &lab, &format!("{}-{seed}", scenario.name()));
    }
    let amounts = Amounts::of(&history);
    println!("{amounts:?}");
    let Amounts { won, renewed, resigned, events, samples } = amounts;
    let each = [won, renewed, resigned, events, samples].into_iter().all(|count| count > 10);
    let enough = each && verdict.operations > 100 && verdict.unknown * 100 <= verdict.operations * UNKNOWN_PERCENT_MAX;
    assert!(enough && faults > 0, "too weak to prove anything: {faults} faults, {verdict:?}");
    Ok(Outcome { scenario, seed, faults, raft_elections: raft_elections_in_all, unchanged, verdict })
}

/// The nodes that nobody has told to end, and that have ended all the same.
fn ended_by_itself(lab: &mut Lab) -> Vec<String> {
    let ended = |place| lab.ended(place).map(|code| format!("n{} ended by itself with {code:?}", place + 1));
    (0..3).filter_map(ended).collect()
}

/// Whether a quorum has flushed something for it.
fn is_changed(attempt: &Attempt) -> bool {
    matches!(attempt.answer, Answer::Ok(Seen::Won { .. } | Seen::Resigned { .. }))
}

/// Writes down all that is known, for whoever has to find the bug.
fn explain(history: &History, verdict: &Verdict, lab: &Lab, name: &str) {
    for violation in verdict.violations.iter().take(10) {
        println!("VIOLATION of {violation}");
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

async fn keep_sampling(world: Arc<World>, node: usize) {
    loop {
        if let Some((applied_index, state_digest)) = report(&world, node).await {
            let sample = Sample { node, at: now(), applied_index, state_digest };
            world.recorder.record(|history| history.samples.push(sample));
        }
        sleep(200 * MILLI).await;
    }
}
