//! What must hold for every sequence of events, tried on random ones: the rules of the rooms, and log time.

mod lease_clock;
mod rooms;
