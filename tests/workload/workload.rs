//! Who uses a cluster while faults strike it, what they saw, and whether it was what was promised. Used by the chaos
//! runs, with real nodes, and by the simulation.

pub mod amounts;
pub mod checker;
pub mod clients;
pub mod history;
pub mod rest;
