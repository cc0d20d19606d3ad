//! The real rule of stamping, and broken rules, each with one part missing or changed.

use quorate::clock::{ClockReading, LeaseClock};
use quorate::domain::{Command, LogTime, Stamp, WallTime};

/// How log time is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rule {
    /// The code of the crate.
    Real,
    /// An unedited copy of that code.
    #[default]
    Copy,
    /// Every node has a clock that runs on all the time. The log can only move it forward.
    MaxMerge,
    /// A raft leader stamps from the moment of its raft election.
    StampBeforeOwnEntry,
    /// The same, from an anchor that is taken whenever another node's entry is applied.
    AnchorOnApplied,
    /// A command of another reign is accepted as if it had been stamped in this one.
    NoTermCheck,
    /// A command of another reign is accepted, but does not move log time.
    WrongTermTakenWithoutItsTime,
    /// The licence is taken anew whenever an own entry is applied.
    LicenceAtEachEntry,
    /// The licence of an earlier reign stays valid in a later one.
    LicenceKept,
    /// Log time is what the raft leader's wall clock says.
    WallClock,
}

impl Rule {
    /// The command that `Rooms::apply` gets under this rule.
    pub fn command_to_apply(self, entry_raft_term: u64, command: &Command) -> Command {
        let mut stamp = command.stamp();
        if stamp.raft_term != entry_raft_term {
            match self {
                Rule::NoTermCheck => stamp.raft_term = entry_raft_term,
                Rule::WrongTermTakenWithoutItsTime => {
                    stamp = Stamp { log_time: LogTime(0), raft_term: entry_raft_term };
                }
                _ => {}
            }
        }
        with_stamp(command, stamp)
    }
}

fn with_stamp(command: &Command, new: Stamp) -> Command {
    let mut command = command.clone();
    match &mut command {
        Command::Campaign { stamp, .. }
        | Command::Renew { stamp, .. }
        | Command::Resign { stamp, .. }
        | Command::Tick { stamp }
        | Command::AnchorWallClock { stamp, .. }
        | Command::RaiseFencingFloor { stamp, .. } => *stamp = new,
    }
    command
}

/// The source of stamps of one node.
pub enum Stamper {
    Real(LeaseClock),
    Edited(Edited),
}

impl Stamper {
    pub fn new(rule: Rule) -> Stamper {
        match rule {
            Rule::Real => Stamper::Real(LeaseClock::default()),
            rule => Stamper::Edited(Edited { rule, ..Edited::default() }),
        }
    }

    pub fn after_apply(&mut self, entry_raft_term: u64, log_time: LogTime, now: ClockReading) {
        match self {
            Stamper::Real(clock) => clock.after_apply(entry_raft_term, log_time, now),
            Stamper::Edited(edited) => edited.after_apply(entry_raft_term, log_time, now),
        }
    }

    pub fn after_restore(&mut self, log_time: LogTime, now: ClockReading) {
        match self {
            Stamper::Real(clock) => clock.after_restore(log_time, now),
            Stamper::Edited(edited) => edited.after_restore(log_time, now),
        }
    }

    pub fn stamp(&mut self, raft_term: u64, now: ClockReading, wall_time: WallTime) -> Option<Stamp> {
        match self {
            Stamper::Real(clock) => clock.stamp(raft_term, now),
            Stamper::Edited(edited) => edited.stamp(raft_term, now, wall_time),
        }
    }
}

/// A copy of `LeaseClock`, with the edit of its rule.
#[derive(Default)]
pub struct Edited {
    rule: Rule,
    /// The last raft term in which this node stamped.
    own_raft_term: Option<u64>,
    applied_raft_term: Option<u64>,
    log_time: LogTime,
    licence: Option<Licence>,
}

#[derive(Clone, Copy)]
struct Licence {
    raft_term: u64,
    log_time: LogTime,
    taken_at: ClockReading,
}

impl Licence {
    fn reading(&self, now: ClockReading) -> LogTime {
        self.log_time.after(now.since(self.taken_at))
    }
}

impl Edited {
    fn after_apply(&mut self, entry_raft_term: u64, log_time: LogTime, now: ClockReading) {
        self.applied_raft_term = Some(entry_raft_term);
        self.log_time = log_time;
        let anew = Some(Licence { raft_term: entry_raft_term, log_time, taken_at: now });
        self.licence = match (self.rule, self.licence) {
            (Rule::MaxMerge, None) | (Rule::LicenceAtEachEntry, Some(_)) => anew,
            (Rule::AnchorOnApplied, _) if self.own_raft_term != Some(entry_raft_term) => anew,
            (Rule::MaxMerge | Rule::LicenceKept, Some(licence)) if licence.reading(now) < log_time => anew,
            (Rule::MaxMerge | Rule::LicenceKept, licence) => licence,
            (_, Some(licence)) if licence.raft_term != entry_raft_term => None,
            (_, Some(licence)) if licence.reading(now) < log_time => anew,
            (_, licence) => licence,
        };
    }

    fn after_restore(&mut self, log_time: LogTime, now: ClockReading) {
        let licence = match self.rule {
            // A clock that runs on all the time does not stop when a snapshot is installed.
            Rule::MaxMerge => self.licence.filter(|licence| licence.reading(now) >= log_time),
            _ => None,
        };
        *self = Edited { rule: self.rule, log_time, licence, ..Edited::default() };
    }

    fn stamp(&mut self, raft_term: u64, now: ClockReading, wall_time: WallTime) -> Option<Stamp> {
        let at_once = matches!(self.rule, Rule::StampBeforeOwnEntry | Rule::AnchorOnApplied);
        if !at_once && self.applied_raft_term != Some(raft_term) {
            return None;
        }
        self.own_raft_term = Some(raft_term);
        if self.rule == Rule::WallClock {
            return Some(Stamp { log_time: LogTime(wall_time.0), raft_term });
        }
        let log_time = self.log_time;
        let licence = *self.licence.get_or_insert(Licence { raft_term, log_time, taken_at: now });
        Some(Stamp { log_time: licence.reading(now), raft_term })
    }
}
