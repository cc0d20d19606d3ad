//! The client: campaign for a room, keep the lease, and stop in time.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.rs"));
//! # async fn write_the_report(_: quorate::domain::FencingToken) -> String { "done".into() }
//! # fn main() { with_a_node(async |node| {
//! use quorate::client::Client;
//!
//! let nodes = ["http://a:7400", "http://b:7400", "http://c:7400"];
//! # let nodes = node;
//! let client = Client::builder().urls(nodes).build()?;
//! let leadership = client.election("nightly-report")?.campaign("worker-a")?.wait().await?;
//! // Renewed in the background. If it is lost, the work is dropped at once; if not, the room is given up after it.
//! let term = leadership.term();
//! let report = leadership.run(write_the_report(term)).await?;
//! # assert_eq!(report, "done");
//! # Ok(()) }) }
//! ```
//!
//! What a holder can rely on:
//!
//! - It stops early, never late. Authority ends at 80 % of the lease, counted from before the first byte of the
//!   request that won or renewed it, on clocks that count suspends ([`holder_clock`](HolderClock)). The other
//!   20 % are for the work to stop.
//! - A node that fails, hangs or answers 5xx is neither loss nor success: another one is asked, until the
//!   deadline decides.
//! - A [`Leadership`] that was lost stays lost. To lead again is another campaign, with a higher term.
//! - Work that was paused can't know that it is late. Send the term along with every write, and let the target
//!   refuse lower ones than it has seen.

mod backoff;
mod builder;
mod caller;
mod campaign;
mod election;
mod error;
mod handle;
mod held_lease;
mod holder_clock;
mod leadership;
mod lease_keeper;
mod room_calls;
mod watch;

pub use builder::ClientBuilder;
pub use campaign::{Attempt, Campaign, Waiting};
pub use election::Election;
pub use error::{ClientError, Rejection};
pub use handle::Client;
pub use held_lease::{Granted, LeadershipState, LossReason, Standing};
pub use holder_clock::{Deadline, HolderClock, HolderInstant, SystemHolderClock};
pub use leadership::{Leadership, Observer};
