//! The client listener: JSON in, JSON out. Nothing about rooms is decided here.
//!
//! ```text
//! request ──► envelope   adds a request id, one trace event, and the JSON body of every error
//!             gate       may this caller use elections at all?                      (election routes only)
//!             admission  has this client campaigned too often?                      (create and campaign only)
//!             extract    reads path, headers and body, or answers with an error
//!             places     are too many requests in flight?                           (election routes only)
//!             rooms, watch, health   call the service and write its answer
//! ```
//!
//! `router` sorts the routes into groups, and each group has its checks. A new route gets the checks of its group.

mod access;
mod admission;
mod client_address;
mod context;
mod envelope;
mod error;
mod extract;
mod gate;
mod health;
mod openapi;
mod places;
mod rooms;
mod router;
mod settings;
mod watch;

pub use router::build_router;
pub use settings::HttpSettings;

#[cfg(test)]
mod tests;
