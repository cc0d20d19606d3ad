//! `quorate bench`: how many operations a running cluster does per second, and how long each takes.
//!
//! Each connection sends a request, waits for the answer, and sends the next one. So the number of connections limits
//! the load, and a slow cluster gets fewer requests. The numbers are those of callers that wait, not of a flood.
//! Latency is measured from before the request is sent until the answer is read. One connection shows latency best,
//! many show throughput.

mod args;
mod load;
mod measure;
mod op;
mod report;
#[cfg(test)]
mod tests;

pub use args::BenchArgs;
pub use measure::run;
