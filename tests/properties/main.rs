//! Promises that must hold for every sequence of events, tested on random sequences: the rules of the rooms, and log time.

mod lease_clock;
mod rooms;
