//! The flags of a candidate, the same for every command that campaigns.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::exit::Failure;
use super::values::Ttl;
use crate::client::{Campaign, Election};
use crate::random::{SystemRandom, random_bytes};

/// The name, the lease and the metadata of a campaign.
#[derive(Debug, clap::Args)]
pub struct CandidateArgs {
    /// Name of this candidate, which everybody can see: 1 to 64 ASCII letters, digits or any of .-_:@ [default:
    /// HOST:PID:RANDOM]
    #[arg(long, env = "QUORATE_CANDIDATE", value_name = "NAME", default_value_t = own_name(),
          hide_default_value = true)]
    pub candidate: String,

    #[arg(long, value_name = "DURATION", default_value_t, help = Ttl::help())]
    pub ttl: Ttl,

    /// Text that everybody can see next to the name, such as an address; at most 1,024 characters and 4,096 bytes
    /// [default: none]
    #[arg(long, value_name = "TEXT")]
    pub metadata: Option<String>,
}

impl CandidateArgs {
    /// A campaign of this candidate. Nothing is sent yet.
    pub fn campaign(&self, election: &Election) -> Result<Campaign, Failure> {
        let campaign = election.campaign(&self.candidate)?.ttl(self.ttl.as_duration())?;
        Ok(match &self.metadata {
            Some(metadata) => campaign.metadata(metadata)?,
            None => campaign,
        })
    }
}

/// A name that no other process has.
fn own_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(|c| c.is_ascii_alphanumeric() || ".-_".contains(*c)).take(32).collect();
    let random = URL_SAFE_NO_PAD.encode(random_bytes::<6>(&SystemRandom));
    format!("{host}:{}:{random}", std::process::id())
}

#[cfg(test)]
mod tests;
