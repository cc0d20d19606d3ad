//! Promises that must hold for every sequence of events, tested on random sequences: the rules of the rooms, and log
//! time.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests use real clocks, threads and chance, and a failed unwrap is a failed test"
)]

mod lease_clock;
mod rooms;
