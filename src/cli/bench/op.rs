//! The operations that a benchmark measures.

use clap::ValueEnum;

/// What a connection does again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Op {
    /// Win a new room each time. Its lease is short, and left to expire
    Campaign,
    /// Renew a lease. Each connection has one
    Renew,
    /// Campaign for a room that somebody else leads
    Lose,
    /// Ask who leads a room
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
