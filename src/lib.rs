//! quorate: leader election as a service that survives the loss of a node.
//!
//! A request arrives as JSON and becomes a command. Raft agrees on the command, and pure code applies it: code that
//! sees only the command and the time written in it.
//!
//! ```text
//! 9  main  docs                              sets the exit code; pages about the whole
//! 8  cli                                     what a person types, one file per group
//! 7  node                                    puts the parts together; owns start and stop
//! 6  config  telemetry                       settings; tracing set-up
//! 5  http  peer_listener      client         the edges: JSON in, JSON out
//! 4  service                    |            one method per thing a user can do
//! 3  consensus                  |            agree on commands, then apply them
//! 2  storage  peer  listen      |            disk; other nodes; sockets
//! 1  raft_types  codec  clock  wire          small shared vocabulary
//! 0  domain  random                          the rules of a room, no IO at all; chance
//! ```
//!
//! A module imports from lower rows only. `tests/tidy.rs` reads the rows from this picture and checks the source.
//!
//! Raft has a leader, a term and an election, and so have the rooms. In this code a room has a *holder*, a *fencing
//! token* and *campaigns*. Raft has a *raft leader*, a *raft term* and *raft elections*. The public JSON calls the
//! holder `leader` and the fencing token `term`, and so do [`wire`] and the client library.
//!
//! With `default-features = false, features = ["client"]` this crate is the client library alone: [`client`] and the
//! modules below it, without Raft, storage and HTTP server.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests use real clocks, threads and chance")
)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod domain;
pub mod random;
pub mod wire;

#[cfg(feature = "client")]
pub mod client;

#[cfg(all(doc, feature = "server"))]
pub mod docs;

cfg_if::cfg_if! {
    if #[cfg(feature = "server")] {
        pub mod cli;
        pub mod clock;
        pub mod codec;
        pub mod config;
        pub mod consensus;
        pub mod http;
        pub mod listen;
        pub mod node;
        pub mod peer;
        pub mod peer_listener;
        pub mod raft_types;
        pub mod service;
        pub mod storage;
        pub mod telemetry;
    }
}
