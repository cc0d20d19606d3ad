//! Checks a history. Each promise has a file, with a history that it must reject and one that it must accept.
//!
//! Statuses are checked for linearizability room by room. Terms order the grants, so no search is needed: a room
//! goes from *held under T* to *vacant* or to *held under a higher T*, and never back; two answers contradict each
//! other only if one ended before the other began, or if both ended one lease. A property test compares that with a
//! search through all orders (`search`) on random answers. Not checked: the content of the log itself (the state digests
//! stand for it), metadata, and `consistency=local` reads beyond their terms. An unknown outcome is open for ever: it may
//! explain what is seen later, and never contradicts anything.

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
