//! Requests to other nodes: their messages, and their way there and back within a timeout.
//!
//! Every request carries a proof of the cluster secret, the protocol version, the cluster id, its sender and its
//! intended receiver. So two clusters that share a name or an old address never mix.

mod carrier;
mod error;
mod messages;
mod secret;
mod snapshot_stream;
mod transport;

pub use carrier::{ANSWER_BYTES_MAX, Carrier, Delivered, HttpCarrier, Parcel};
pub use error::PeerError;
pub use messages::{Decision, ForwardedOperation, PROTOCOL, PeerIdentity, SnapshotHead, Undecided, header, path};
pub use secret::ClusterSecret;
pub use snapshot_stream::{BrokenSnapshot, read_snapshot, write_snapshot};
pub use transport::{Sender, Transport};
