//! The checker: compares a history with what is promised. Each promise has a file. Its tests show a history that the
//! check rejects and one that it accepts.
//!
//! Answers about one room are checked for linearizability. Terms order the grants, so no search is needed. A room goes
//! from *occupied under term T* to *vacant*, or to *occupied under a higher term*, and never back. So two answers
//! contradict each other only if one came before the other was asked for, or if both ended the same lease. A property
//! test compares this with a search through all orders (`search`) on random answers.
//!
//! An unknown outcome stays open for ever. It may explain a later answer, and never contradicts one.
//!
//! The checker does not check the content of the raft log (the state digests stand for it), and it does not check
//! metadata. Of answers to `consistency=local` reads it checks only the holders and terms.

mod answers;
mod calm;
mod convergence;
mod early;
mod exclusion;
mod keys;
mod leases;
mod liveness;
#[cfg(test)]
mod made;
mod minority;
mod observations;
pub mod outages;
#[cfg(test)]
mod search;
mod secrets;
mod statuses;
mod terms;
mod verdict;
mod violation;
mod watches;

pub use verdict::{Verdict, check};
