//! `quorate bench`: how much a running cluster does, and how long each caller waits for it.
//!
//! Each connection asks, waits for the answer and asks again. So the load is bounded by their number, and a
//! cluster that is stuck is asked less: the numbers show what callers who wait would see, not what a flood
//! would. Latency goes from before the request is sent until its answer is read; one connection shows it
//! best, many show throughput.

mod args;
mod load;
mod measure;
mod op;
mod report;
#[cfg(test)]
mod tests;

pub use args::BenchArgs;
pub use measure::run;
