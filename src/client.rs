//! Leader election for Rust programs: win a room, keep its lease, and stop in time.
//!
//! To get this library without the server, depend on quorate with `default-features = false, features = ["client"]`.
//! It runs on tokio.
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
//! let term = leadership.term();
//! // The lease is renewed in the background. If it is lost, the work is dropped at once.
//! // When the work is done, the room is given up.
//! let report = leadership.run(write_the_report(term)).await?;
//! # assert_eq!(report, "done");
//! # Ok(()) }) }
//! ```
//!
//! # From a client to a leadership
//!
//! - A [`Client`] knows the nodes of one cluster. [`Client::builder`] sets it up.
//! - An [`Election`] is one *room*: a name that all candidates agree on. At most one candidate leads it at a time.
//!   [`status`](Election::status) reads the room, and [`watch`](Election::watch) follows it.
//! - A [`Campaign`] tries to lead the room: [once](Campaign::try_once), [for some time](Campaign::wait_timeout), or
//!   [for as long as it takes](Campaign::wait).
//! - A [`Leadership`] is the right to act, while it lasts. [`run`](Leadership::run) ties a future to it,
//!   [`token`](Leadership::token) is a cancellation token, and [`is_held`](Leadership::is_held) suits work in steps.
//! - A [`ClientError`] says whether a retry can help, and whether a lease may exist in spite of the error.
//!
//! # What a leader can rely on
//!
//! - A leadership ends early, never late. Authority ends after 80 % of the lease. The other 20 % are for the work to
//!   stop. The lease is counted from the moment before its last successful request was sent, on clocks that go on while
//!   the machine sleeps (see [`HolderClock`]).
//! - A node that fails, hangs or answers with 5xx proves nothing about the lease. The client asks the other nodes
//!   until one answers or authority ends.
//! - A [`Leadership`] that was lost stays lost. To lead again, campaign again; the new term is higher.
//!
//! # What a leader must do
//!
//! A program that was paused cannot know that it is late. So send the [term](Leadership::term) with every write, and
//! let the target reject a write whose term is lower than one that it has seen.

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
