//! What a benchmark measures.

use clap::ValueEnum;

/// What a connection does over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Op {
    /// Win a room that is new each time; its lease of 5 s is left to expire, so that only campaigns are measured
    Campaign,
    /// Renew a lease of the connection's own
    Renew,
    /// Campaign for a room that somebody else holds
    Lose,
    /// Read a room that somebody holds
    Status,
}

impl Op {
    pub fn name(self) -> &'static str {
        match self {
            Op::Campaign => "campaign",
            Op::Renew => "renew",
            Op::Lose => "lose",
            Op::Status => "status",
        }
    }
}
