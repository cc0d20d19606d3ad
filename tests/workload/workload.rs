//! Who uses a cluster while faults strike it, what they saw, and whether it was what was promised. Used by the chaos
//! runs, with real nodes, and by the simulation.

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
