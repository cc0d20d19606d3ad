//! The history: every request, every answer and every event that clients saw, and every fault, all on one clock.
//!
//! Clients see the public API, so its words are used here: the *term* is the number of a lease (its fencing token).
//! Raft's term is always called raft term.

use std::collections::HashMap;
use std::sync::Mutex;

/// A moment or a duration in microseconds: of this machine's raw monotonic clock, or of simulated time.
pub type Moment = u64;

pub const MILLI: Moment = 1_000;
pub const SECOND: Moment = 1_000_000;

/// The duration of every lease in a workload.
pub const LEASE: Moment = 5 * SECOND;
/// How much longer a lease may last than its holder is told: 10 ms and a thousandth of its duration.
pub const GUARD: Moment = 15 * MILLI;

/// What a client asked for. A lease is identified by its term.
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
    /// A read that a node answers by itself, and that may be out of date.
    LocalRead,
}

/// What a complete response with status 200 says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The caller holds the room. The lease lasts for `valid_for`, counted from the moment at which the request was
    /// sent.
    Won {
        term: u64,
        valid_for: Moment,
    },
    /// Somebody holds the room: the answer to a read, or to a campaign that has not won.
    Occupied {
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
    /// A complete response with status 200.
    Ok(Seen),
    /// Nothing was done, and nothing will be: a documented failure (400, 401, 403, 404, 409, 429 or `unavailable`), or
    /// no connection.
    NothingDone,
    /// `lease_not_current`: nothing was done, because the lease is over.
    NotHolder,
    /// Anything else: a timeout, a reset, `outcome_unknown`, another 5xx, an unreadable body. The operation may have
    /// been done, may be done once at any later moment, or never.
    Unknown,
}

/// One request and its answer.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "some fields are only printed, for people who read a history")]
pub struct Attempt {
    pub client: u32,
    /// The contender. Its name is a new one for each `Idempotency-Key`, so it identifies the key as well. Empty for
    /// reads.
    pub holder: String,
    /// Counts the attempts with one key.
    pub attempt: u32,
    pub node: usize,
    pub room: usize,
    pub asked: Asked,
    /// Before the first byte was sent.
    pub sent_at: Moment,
    /// After the last byte was received. `None` if the outcome is unknown.
    pub answered_at: Option<Moment>,
    pub answer: Answer,
    /// When the caller hung up, if no answer had come.
    pub hangs_up: Moment,
    /// How long the request asked to wait for the room.
    pub waits: Moment,
    /// The HTTP status; 0 if there was no response.
    pub status: u16,
    pub retry_after: Option<Moment>,
}

/// The moment at which a holder stopped acting: because its time had run out, because it was told, or because it chose
/// to.
#[derive(Debug, Clone)]
pub struct Stop {
    pub term: u64,
    pub at: Moment,
    /// Whether its time ran out although it wanted to go on.
    pub ran_out: bool,
}

/// An event of a watch stream.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// The number of the stream. Each connection is a new stream.
    pub stream: u64,
    pub node: usize,
    pub room: usize,
    pub at: Moment,
    /// The holder and its term, or `None` for a vacant room.
    pub holder: Option<(String, u64)>,
}

/// A node's own report.
#[derive(Debug, Clone)]
pub struct Sample {
    pub node: usize,
    pub at: Moment,
    pub applied_index: u64,
    pub state_digest: String,
}

/// A fault that was injected.
#[derive(Debug, Clone)]
pub struct Fault {
    pub name: String,
    pub from: Moment,
    /// When this fault was undone. Others that were injected together with it may last longer.
    pub undone: Moment,
    /// When all nodes served again; `None` if they did not in the time that they have.
    pub healed: Option<Moment>,
    /// The nodes that certainly had no quorum from `cut` until `undone`.
    pub without_quorum: Vec<usize>,
    pub cut: Moment,
}

/// The state of the cluster after the faults had been undone and the holders had gone.
#[derive(Debug, Clone, Default)]
pub struct Rest {
    /// From this moment on, campaigns only check whether a room can be won.
    pub from: Option<Moment>,
    /// The applied index and the state digest of each node: as soon as all were equal, or when the time was over.
    pub nodes: Vec<(u64, String)>,
    /// The term of the lease of each room, or `None` for a vacant room.
    pub rooms: Vec<Option<u64>>,
    /// Watch streams that were open at the end.
    pub open_streams: Vec<u64>,
    /// Everything that did not work again.
    pub not_served: Vec<String>,
    /// The files in which a secret was found.
    pub leaks: Vec<String>,
}

/// Everything that was recorded in a run.
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
    /// The history in the order of time, for a person who searches for a bug.
    pub fn text(&self) -> String {
        let attempts = self.attempts.iter().map(|attempt| (attempt.sent_at, format!("{attempt:?}")));
        let stops = self.stops.iter().map(|stop| (stop.at, format!("{stop:?}")));
        let events = self.events.iter().map(|event| (event.at, format!("{event:?}")));
        let faults = self.faults.iter().map(|fault| (fault.from, format!("{fault:?}")));
        let mut lines: Vec<(Moment, String)> = attempts.chain(stops).chain(events).chain(faults).collect();
        lines.sort();
        let lines: Vec<String> = lines.into_iter().map(|(at, line)| format!("{at:>10} {line}")).collect();
        format!("{}\n{:#?}\n", lines.join("\n"), self.rest)
    }
}

/// Collects the history while a run goes on. All tasks write to it.
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
