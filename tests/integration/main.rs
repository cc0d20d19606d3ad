//! Real nodes: the built program, on loopback addresses of its own, over HTTP; and the storage layer on real disks.

mod caller;
mod client_probe;
mod client_process;
mod client_proxy;
mod disk_image;
mod harness;
mod raw_line;
mod secret_scanner;

mod cli;
mod client_cli;
mod client_lease;
mod cluster;
mod contract;
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
mod peer_port;
mod peer_snapshots;
mod power_cut;
mod raw_socket;
mod recipes;
mod run;
mod secrets;
mod storage;
mod storage_damage;
mod storage_golden;
mod storage_kill;
mod watch;
