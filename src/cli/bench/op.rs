//! The operations that a benchmark measures.

use clap::ValueEnum;

/// The operation that a connection repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Op {
    /// Win a new room each time. Its lease is short, and expires by itself
    Campaign,
    /// Renew a lease. Each connection has its own
    Renew,
    /// Campaign for a room that somebody else leads
    Lose,
    /// Read who leads a room
    Status,
}

impl Op {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Op::Campaign => "campaign",
            Op::Renew => "renew",
            Op::Lose => "lose",
            Op::Status => "status",
        }
    }
}
