//! Sockets: accepting connections within limits, and serving a router on them. Each listener of a node uses this.

mod client_key;
mod connections;
mod once_per_minute;
mod serve;
mod shares;

pub use client_key::ClientKey;
pub use connections::ConnectionLimits;
pub use once_per_minute::OncePerMinute;
pub use serve::Serving;
pub use shares::{Share, Shares};
