//! The client listener: JSON in, JSON out. Nothing about rooms is decided here.
//!
//! ```text
//! caller ───► connections   is there a place for one more, and for one more of this caller?
//! request ──► envelope   request id, one trace event, and errors made into JSON, whoever made them
//!             gate       may this caller use elections at all?      (election routes only)
//!             extract    path, headers and body, or a 400
//!             limits     is there room for it now?                  (election routes only)
//!             rooms, watch, health   call the service and say what it said
//! ```
//!
//! What is asked of a caller is told by the group in `router` that a route is in, so that a new route is
//! guarded unless it says otherwise.

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
