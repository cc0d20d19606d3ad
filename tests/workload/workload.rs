//! The clients that use a cluster while faults are injected, the history of what they saw, and the checker that
//! compares the history with what is promised. Used by the chaos runs, with real nodes, and by the simulation.

pub mod amounts;
pub mod checker;
mod classify;
pub mod client;
pub mod crowd;
pub mod history;
pub mod outside;
pub mod rest;
pub mod watching;
pub mod world;
