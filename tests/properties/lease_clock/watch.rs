//! Compares committed entries with real time, which no node knows.
//!
//! **(P)** For committed entries i before j, `N_j - N_i <= (1 + e) * (R_j - R_i) + slack`.
//!
//! - N is log time after the entry.
//! - `e` is how fast a raft leader's clock may be.
//! - R is the real moment of the *latest* stamp of all entries up to this one. The latest counts because a raft leader
//!   may append its proposals in another order than it stamped them. An entry with an earlier stamp does not move log
//!   time.
//!
//! Why (P) is enough: a holder counts its lease from before its own stamp, so from R_i at the latest. A rival gets the
//! room at an entry j with `N_j >= N_i + ttl + guard`. From (P) follows `R_j >= R_i + (ttl + guard) / (1 + e)`, minus
//! the slack. And R_j is in the past when j commits, so the rival hears of its grant after R_j.
//!
//! Why the slack is 1 ms for any number of reigns: a reading is cut to whole milliseconds. So one licence counts at
//! most 1 ms more than its clock advanced. The licence of the next reign could add another 1 ms. But it is taken after
//! a raft election, at least 1 ms after the last stamp that it continues from, and log time does not count that time.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use quorate::domain::{Command, FencingToken, LogTime, Outcome, Refusal, RoomId, RoomView};

/// How wrong the clock of a node or of a holder may be. The guard of a lease allows for this error.
pub const CLOCK_ERROR_MAX: f64 = 500e-6;

const SLACK_MS: f64 = 1.0;

/// Far more than the rounding errors here, and far less than any real violation.
const EPSILON_MS: f64 = 1e-3;

/// A moment of real time, in microseconds since the schedule began.
pub type Moment = u64;

pub const MILLISECOND: Moment = 1_000;
pub const SECOND: Moment = 1_000 * MILLISECOND;
pub const MINUTE: Moment = 60 * SECOND;

fn ms(moment: Moment) -> f64 {
    moment as f64 / MILLISECOND as f64
}

/// A broken promise.
#[derive(Debug)]
pub enum Violation {
    /// Log time was ahead by this many milliseconds.
    Fast(f64),
    /// A room went to a rival this many milliseconds before its holder stopped.
    Overlap(f64),
    /// Without faults, log time advanced by only this share of real time.
    Crawl(f64),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Fast(ms) => write!(f, "log time is {ms:.3} ms ahead"),
            Violation::Overlap(ms) => write!(f, "a rival won {ms:.3} ms too early"),
            Violation::Crawl(share) => write!(f, "log time advances at {share:.3} of real time"),
        }
    }
}

/// How often each kind of event happened. If a kind is rare, the run has not tested it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Coverage {
    pub entries: u64,
    pub reigns: u64,
    pub raft_re_elections: u64,
    pub lost_entries: u64,
    pub stale_stamps: u64,
    pub out_of_order_stamps: u64,
    pub grants: u64,
    pub takeovers: u64,
    pub renewals: u64,
    pub resignations: u64,
    pub looks: u64,
    pub restarts: u64,
    pub snapshots_installed: u64,
    pub stalls: u64,
    pub wall_steps: u64,
    pub cuts: u64,
}

impl Coverage {
    fn all(&mut self) -> [&mut u64; 16] {
        [
            &mut self.entries,
            &mut self.reigns,
            &mut self.raft_re_elections,
            &mut self.lost_entries,
            &mut self.stale_stamps,
            &mut self.out_of_order_stamps,
            &mut self.grants,
            &mut self.takeovers,
            &mut self.renewals,
            &mut self.resignations,
            &mut self.looks,
            &mut self.restarts,
            &mut self.snapshots_installed,
            &mut self.stalls,
            &mut self.wall_steps,
            &mut self.cuts,
        ]
    }

    pub fn assert_complete(mut self) {
        let shown = format!("{self:?}");
        assert!(self.all().iter().all(|count| **count >= 100), "too little happened: {shown}");
    }
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, mut other: Coverage) {
        for (count, more) in self.all().into_iter().zip(other.all()) {
            *count += *more;
        }
    }
}

/// The belief of a holder that it may act until `stops_at`, in milliseconds of real time.
struct Belief {
    fencing_token: FencingToken,
    stops_at: f64,
}

/// Checks each committed entry once, in the order of the log.
pub struct Watch {
    /// How slow the clocks of holders are, as a share.
    pub holder_clock_error: f64,
    latest_stamp: Moment,
    /// The smallest difference so far between log time and the log time that real time allows.
    least_excess: Option<f64>,
    beliefs: BTreeMap<RoomId, Belief>,
    pub coverage: Coverage,
}

impl Watch {
    pub fn new() -> Watch {
        Watch {
            holder_clock_error: CLOCK_ERROR_MAX,
            latest_stamp: 0,
            least_excess: None,
            beliefs: BTreeMap::new(),
            coverage: Coverage::default(),
        }
    }

    /// `stamped_at` is the real moment of the stamp. `after` is log time after the command was applied.
    pub fn committed(
        &mut self,
        command: &Command,
        stamped_at: Moment,
        outcome: &Outcome,
        after: LogTime,
    ) -> Result<(), Violation> {
        self.coverage.entries += 1;
        if *outcome == Outcome::Refused(Refusal::StaleStamp) {
            self.coverage.stale_stamps += 1;
            return Ok(());
        }
        self.coverage.out_of_order_stamps += u64::from(stamped_at < self.latest_stamp);
        self.latest_stamp = self.latest_stamp.max(stamped_at);
        let excess = after.0 as f64 - (1.0 + CLOCK_ERROR_MAX) * ms(self.latest_stamp);
        let least = *self.least_excess.get_or_insert(excess);
        self.least_excess = Some(least.min(excess));
        if excess - least > SLACK_MS + EPSILON_MS {
            return Err(Violation::Fast(excess - least));
        }
        self.holders(command, stamped_at, outcome)
    }

    fn holders(&mut self, command: &Command, stamped_at: Moment, outcome: &Outcome) -> Result<(), Violation> {
        match (command, outcome) {
            (Command::Campaign { campaign, .. }, Outcome::Granted(view)) => {
                self.coverage.grants += 1;
                if let Some(rival) = self.beliefs.remove(&campaign.room) {
                    self.coverage.takeovers += 1;
                    let early = rival.stops_at - ms(self.latest_stamp);
                    if early > 0.0 {
                        return Err(Violation::Overlap(early));
                    }
                }
                self.believe(&campaign.room, stamped_at, view);
            }
            (Command::Renew { renew, .. }, Outcome::Renewed(view)) => {
                self.coverage.renewals += 1;
                self.believe(&renew.room, stamped_at, view);
            }
            (Command::Resign { resign, .. }, Outcome::Resigned(_)) => {
                self.coverage.resignations += 1;
                self.beliefs.remove(&resign.room);
            }
            _ => {}
        }
        Ok(())
    }

    /// A holder sees its room in an answer that needed no log entry.
    pub fn looked(&mut self, room: &RoomId, asked_at: Moment, view: &RoomView) {
        self.coverage.looks += 1;
        self.believe(room, asked_at, view);
    }

    /// The worst possible holder: it sent its request at the moment of the stamp, and its clock is slow.
    fn believe(&mut self, room: &RoomId, asked_at: Moment, view: &RoomView) {
        let Some(lease) = &view.lease else { return };
        let fencing_token = lease.fencing_token;
        let valid_for_ms = lease.valid_for(view.log_time).as_millis() as f64;
        let stops_at = ms(asked_at) + valid_for_ms / (1.0 - self.holder_clock_error);
        let belief = self.beliefs.entry(room.clone()).or_insert(Belief { fencing_token, stops_at });
        if belief.fencing_token == fencing_token {
            belief.stops_at = belief.stops_at.max(stops_at);
        }
    }
}
