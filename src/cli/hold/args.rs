//! What `quorate hold` can be told.

use std::net::SocketAddr;

use crate::cli::connect::ConnectArgs;
use crate::cli::lead::LeadArgs;
use crate::cli::output::Output;

const EXAMPLES: &str = "\
Prints a line of JSON for each event: waiting, leader, renewed, failover, released, lost, uncertain, error. Once lost, \
a leadership is never taken again: exit code 20. SIGTERM and SIGINT resign: 143 and 130.

Whoever acts on the events must stop authority_remaining_ms after them, whether another one comes or not. The sidecar \
of --listen is computed from the deadline at each request: / is the leader's name, /is-leader answers 200 or 409, \
/status both as JSON.

Example:
  quorate hold nightly-report --candidate worker-a --listen 127.0.0.1:4040 &
  curl -fs http://127.0.0.1:4040/is-leader && ./report";

/// Arguments of `quorate hold`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct HoldArgs {
    /// The room
    pub room: String,

    #[command(flatten)]
    pub lead: LeadArgs,

    /// Serve who leads, over HTTP, to programs on this machine
    #[arg(long, value_name = "IP:PORT")]
    pub listen: Option<SocketAddr>,

    #[command(flatten)]
    pub connect: ConnectArgs,

    /// How to print the events [default: text on a terminal, json elsewhere]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output: Option<Output>,
}
