//! The peer listener: raft messages and forwarded operations, from nodes that prove the cluster secret.
//!
//! ```text
//! request ──► access     does the caller know the cluster secret, and is the request for this node and cluster?
//!             handlers   read the body, call consensus or the service, write the answer
//! ```
//!
//! Requests without that proof are rejected before any of the body is read.

mod access;
mod context;
mod handlers;
mod rejected;
mod router;

pub use context::PeerContext;
pub use router::build_peer_router;
