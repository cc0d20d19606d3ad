//! The arguments of `quorate hold`.

use std::net::SocketAddr;

use crate::cli::connect::ConnectArgs;
use crate::cli::lead::LeadArgs;
use crate::cli::output::Output;
use crate::cli::values::ROOM_HELP;

const MORE_HELP: &str = "\
Prints one line on stdout for each event:
  waiting    somebody else leads, or no node can decide now
  leader     this process leads
  renewed    the lease was renewed
  failover   a different node answers now
  released   the room was given up
  lost       the leadership is lost
  uncertain  no renewal succeeded in time, so the leadership may be lost
  error      a request failed; reason_code says why

While this process leads, each event says in authority_remaining_ms how long acting is still
allowed. A program that acts for this leader must stop when that time is over, unless a later event
allows more. After released, lost, uncertain or error it must stop at once. After a loss, the process
doesn't campaign again: it exits with code 20.

With --listen, other programs on this machine can ask who leads, with a GET request:
  /           the name of the leader; 404 if the room is vacant, 503 if the leader is unknown
  /is-leader  200 if this process leads, otherwise 409
  /status     both, and the time that is left, as JSON

Exit codes:
  0    nobody reads stdout any more; the room was given up
  10   somebody else leads the room (--no-wait)
  11   the room was not won within --wait
  20   the leadership is lost, or may be lost
  64   wrong command line
  69   no node was reached, or none can decide now
  70   internal error
  77   not allowed by the cluster
  129, 130, 131, 143
       the signal HUP, INT, QUIT or TERM ended the process; if it led, it gave the room up

Example:
  quorate hold nightly-report --candidate worker-a --listen 127.0.0.1:4040 &
  curl -fs http://127.0.0.1:4040/is-leader && ./report";

/// Arguments of `quorate hold`.
#[derive(Debug, clap::Args)]
#[command(after_help = MORE_HELP)]
pub struct HoldArgs {
    #[arg(help = ROOM_HELP)]
    pub room: String,

    #[command(flatten)]
    pub lead: LeadArgs,

    /// Address on which this process says who leads, over HTTP (see below) [default: none]
    #[arg(long, value_name = "IP:PORT")]
    pub listen: Option<SocketAddr>,

    #[command(flatten)]
    pub connect: ConnectArgs,

    /// How to print events [default: text on a terminal, otherwise json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output: Option<Output>,
}
