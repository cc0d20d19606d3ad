//! What happened, as clients saw it: every attempt, every stop, every event, on one clock that nothing changes.

use std::collections::HashMap;
use std::sync::Mutex;

/// Microseconds of this machine's raw monotonic clock.
pub type Moment = u64;

pub const MILLI: Moment = 1_000;
pub const SECOND: Moment = 1_000_000;

/// The duration of every lease here, as asked for.
pub const LEASE: Moment = 5 * SECOND;
/// What a lease may last beyond what its holder is told: 10 ms and a thousandth.
pub const GUARD: Moment = 15 * MILLI;

/// What was asked for in an attempt. A lease is known by its term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Campaign,
    Renew {
        term: u64,
    },
    Resign {
        term: u64,
    },
    Read,
    /// A read that may be out of date.
    LocalRead,
}

/// What a complete 2xx answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The caller holds the room, for so long from the moment before it sent the attempt.
    Won {
        term: u64,
        valid_for: Moment,
    },
    /// Somebody holds the room: a lost campaign, or a read.
    Held {
        holder: String,
        term: u64,
    },
    Vacant,
    Resigned {
        term: u64,
    },
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A complete 2xx.
    Ok(Seen),
    /// A documented answer by which nothing was or will be done: 400, 401, 403, 409, 429, `unavailable`, no
    /// connection.
    No,
    /// `lease_not_current`: a no that says that the lease is over.
    NotHolder,
    /// Anything else: a timeout, a reset, `outcome_unknown`, another 5xx, nonsense. It may be done once at any
    /// later moment, or never.
    Unknown,
}

/// One request, and what came of it.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "some of it is there for those who read a written history")]
pub struct Attempt {
    pub client: u32,
    /// The contender, made anew with each `Idempotency-Key`, so that it stands for the key too. Empty for reads.
    pub holder: String,
    /// Counts the attempts with one key.
    pub attempt: u32,
    pub node: usize,
    pub room: usize,
    pub asked: Asked,
    /// Before the first byte.
    pub t0: Moment,
    /// After the last byte; `None` is never: the outcome is unknown, and stays open for ever.
    pub t1: Option<Moment>,
    pub answer: Answer,
    /// When the caller hung up, if no answer had come.
    pub hangs_up: Moment,
    /// How long it asked to wait for the room.
    pub waits: Moment,
    /// HTTP status; 0 if none came.
    pub status: u16,
    pub retry_after: Option<Moment>,
}

/// The moment at which a holder ceased to act as one, by its own clock or by its own will.
#[derive(Debug, Clone)]
pub struct Stop {
    pub term: u64,
    pub at: Moment,
    /// Whether its time ran out while it wanted to go on.
    pub ran_out: bool,
}

/// An event of a watch stream.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// Counts streams; each connection is a new one.
    pub stream: u64,
    pub node: usize,
    pub room: usize,
    pub at: Moment,
    /// Holder and term, or nobody.
    pub held: Option<(String, u64)>,
}

/// A node's own report.
#[derive(Debug, Clone)]
pub struct Sample {
    pub node: usize,
    pub at: Moment,
    pub applied_index: u64,
    pub state_digest: String,
}

/// Something that was done to the cluster.
#[derive(Debug, Clone)]
pub struct Fault {
    pub name: String,
    pub from: Moment,
    /// When it was undone, itself; what was done together with it may last longer.
    pub undone: Moment,
    /// When all nodes served again; `None`: not in the time that they have.
    pub healed: Option<Moment>,
    /// The nodes that certainly could reach no quorum from `cut` on, until `undone`.
    pub without_quorum: Vec<usize>,
    pub cut: Moment,
}

/// How everything stood once the faults were over and the holders had gone.
#[derive(Debug, Clone, Default)]
pub struct Rest {
    /// From then on rooms are asked for to see whether they can be had, and not because somebody wants them.
    pub from: Option<Moment>,
    /// Per node: applied index and digest, as soon as the indexes were equal; as they were when time was up else.
    pub nodes: Vec<(u64, String)>,
    /// Per room: who holds it.
    pub rooms: Vec<Option<u64>>,
    /// Watch streams that were open when the rest began.
    pub open_streams: Vec<u64>,
    /// What did not work again: a node that served no campaign, renewal, read and resignation.
    pub not_served: Vec<String>,
    /// Where a secret was found.
    pub leaks: Vec<String>,
}

/// Everything.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub attempts: Vec<Attempt>,
    pub stops: Vec<Stop>,
    pub events: Vec<WatchEvent>,
    /// Watch streams that ended, and when.
    pub stream_ends: HashMap<u64, Moment>,
    pub samples: Vec<Sample>,
    pub faults: Vec<Fault>,
    pub rest: Rest,
}

impl History {
    /// For whoever has to find a bug, in the order of time.
    pub fn text(&self) -> String {
        let attempts = self.attempts.iter().map(|attempt| (attempt.t0, format!("{attempt:?}")));
        let stops = self.stops.iter().map(|stop| (stop.at, format!("{stop:?}")));
        let events = self.events.iter().map(|event| (event.at, format!("{event:?}")));
        let faults = self.faults.iter().map(|fault| (fault.from, format!("{fault:?}")));
        let mut lines: Vec<(Moment, String)> = attempts.chain(stops).chain(events).chain(faults).collect();
        lines.sort();
        let lines: Vec<String> = lines.into_iter().map(|(at, line)| format!("{at:>10} {line}")).collect();
        format!("{}\n{:#?}\n", lines.join("\n"), self.rest)
    }
}

/// Where all tasks write.
#[derive(Default)]
pub struct Recorder(Mutex<History>);

impl Recorder {
    pub fn record(&self, write: impl FnOnce(&mut History)) {
        write(&mut self.0.lock().unwrap());
    }

    pub fn take(&self) -> History {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}
