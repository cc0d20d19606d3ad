//! Real nodes: the built program, on loopback addresses of its own, over HTTP; and the storage layer on real disks.

mod harness;

mod cluster;
mod disk;
mod message_golden;
mod power_cut;
mod storage;
mod storage_damage;
mod storage_golden;
mod storage_kill;
