//! Other nodes: what is said to them, and how it gets there and back by a deadline.
//!
//! Every request carries the cluster secret's proof, the protocol version, the cluster id, who sends it and
//! who is meant to get it, so that two clusters which share a name or a stale address never mix.

mod carrier;
mod messages;
mod snapshot_stream;
mod transport;

pub use carrier::{Carrier, CarryFailure, Delivered, HttpCarrier, Parcel};
pub use messages::{AskFailure, Decision, ForwardedAsk, Headers, PROTOCOL, PeerIdentity, SnapshotHead, header, path};
pub use snapshot_stream::{BrokenSnapshot, read_snapshot, write_snapshot};
pub use transport::{ClusterSecret, PeerError, Sender, Transport};
