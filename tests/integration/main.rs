//! Tests of the built program: real nodes on loopback addresses, called over HTTP. The storage layer is tested
//! by itself, on real disks.
//!
//! The first block of modules holds the tools, the second the tests.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests use real clocks, threads and chance, and a failed unwrap is a failed test"
)]

mod caller;
mod client_probe;
mod client_process;
mod client_proxy;
mod disk_image;
mod harness;
mod peer_caller;
mod raw_connection;
mod raw_requests;
mod secret_scanner;
mod storage_fixtures;

mod cli;
mod client_cli;
mod client_lease;
mod cluster;
mod contract;
mod contract_input;
mod contract_limits;
mod contract_outcomes;
mod contract_waiting;
mod crowd;
mod disk;
mod far_apart;
mod hold;
mod hung_leader;
mod message_golden;
mod openapi;
mod peer_answers;
mod peer_port;
mod peer_snapshots;
mod power_cut;
mod raw_socket;
mod raw_socket_timing;
mod recipes;
mod run;
mod secrets;
mod storage;
mod storage_damage;
mod storage_damage_state;
mod storage_golden;
mod storage_kill;
mod storage_newer;
mod watch;
mod watch_slow_reader;
