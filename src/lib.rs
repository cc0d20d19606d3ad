//! quorate: leader election as a service that survives the loss of a node.
//!
//! A request arrives as JSON, becomes a command, is agreed on by Raft, and is applied by pure code that sees
//! only the command and the time written in it.
//!
//! ```text
//! 9  main                                    sets the exit code
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
//! A module imports from lower rows only; `tests/tidy.rs` reads the source to keep it so. Raft has a leader, a
//! term and an election, and so have the rooms: here a room has a *holder*, a *fencing token* and a *campaign*,
//! and Raft has a *raft leader* and a *raft term*. The wire says `leader` and `term`, and only [`wire`] knows both.
//!
//! A program that only wants to lead takes `default-features = false, features = ["client"]`, and gets [`client`] and
//! what is below it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod clock;
#[cfg(feature = "server")]
pub mod codec;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod consensus;
pub mod domain;
#[cfg(feature = "server")]
pub mod http;
#[cfg(feature = "server")]
pub mod listen;
#[cfg(feature = "server")]
pub mod node;
#[cfg(feature = "server")]
pub mod peer;
#[cfg(feature = "server")]
pub mod peer_listener;
#[cfg(feature = "server")]
pub mod raft_types;
pub mod random;
#[cfg(feature = "server")]
pub mod service;
#[cfg(feature = "server")]
pub mod storage;
#[cfg(feature = "server")]
pub mod telemetry;
pub mod wire;
