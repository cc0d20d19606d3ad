//! The numbers of a benchmark, for people and for programs.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::json;

use crate::domain::millis;

/// The measurements of one run, or of one of its connections.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Latency of every operation that succeeded, in microseconds.
    latencies_us: Histogram<u64>,
    /// How often each failure happened, by its code.
    errors: BTreeMap<String, u64>,
    /// From the first request to the last answer.
    pub elapsed: Duration,
}

impl Sample {
    /// 60 s, which is more than any request may take.
    const LATENCY_US_MAX: u64 = 60_000_000;

    pub fn new() -> Sample {
        let latencies_us = Histogram::new_with_bounds(1, Self::LATENCY_US_MAX, 3).expect("these bounds are valid");
        Sample { latencies_us, errors: BTreeMap::new(), elapsed: Duration::ZERO }
    }

    pub fn add_success(&mut self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(Self::LATENCY_US_MAX);
        self.latencies_us.saturating_record(us.max(1));
    }

    pub fn add_error(&mut self, code: String) {
        *self.errors.entry(code).or_default() += 1;
    }

    /// Adds what another connection measured at the same time.
    pub fn merge(&mut self, other: &Sample) {
        self.latencies_us.add(&other.latencies_us).expect("all samples have the same bounds");
        for (code, count) in &other.errors {
            *self.errors.entry(code.clone()).or_default() += count;
        }
    }

    fn ops_per_second(&self) -> f64 {
        self.latencies_us.len() as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    fn percentile_ms(&self, percentile: f64) -> f64 {
        self.latencies_us.value_at_percentile(percentile) as f64 / 1000.0
    }

    fn max_ms(&self) -> f64 {
        self.latencies_us.max() as f64 / 1000.0
    }
}

/// All runs of one benchmark.
#[derive(Debug)]
pub struct Report {
    urls: Vec<String>,
    duration: Duration,
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    op: &'static str,
    connections: usize,
    sample: Sample,
}

impl Report {
    pub fn new(urls: Vec<String>, duration: Duration) -> Report {
        Report { urls, duration, runs: Vec::new() }
    }

    /// The settings, and the names of the columns.
    pub fn heading(&self) -> String {
        let (version, urls) = (env!("CARGO_PKG_VERSION"), self.urls.join(","));
        let duration = humantime::format_duration(self.duration);
        format!(
            "quorate {version} bench, {duration} a run, {urls}\n{:<9}{:>12}{:>12}{:>10}{:>10}{:>10}  errors",
            "op", "connections", "ops/s", "p50 ms", "p99 ms", "max ms"
        )
    }

    /// Adds a run, and returns its row of the table.
    pub fn add(&mut self, op: &'static str, connections: usize, sample: Sample) -> String {
        let errors: Vec<String> = sample.errors.iter().map(|(code, count)| format!("{code} {count}")).collect();
        let errors = if errors.is_empty() { "none".to_owned() } else { errors.join(", ") };
        let row = if sample.latencies_us.is_empty() {
            format!("{op:<9}{connections:>12}{:>12.1}{:>10}{:>10}{:>10}  {errors}", 0.0, "-", "-", "-")
        } else {
            let (rate, max) = (sample.ops_per_second(), sample.max_ms());
            let (p50, p99) = (sample.percentile_ms(50.0), sample.percentile_ms(99.0));
            format!("{op:<9}{connections:>12}{rate:>12.1}{p50:>10.2}{p99:>10.2}{max:>10.2}  {errors}")
        };
        self.runs.push(Run { op, connections, sample });
        row
    }

    /// Warnings about numbers that are easily misunderstood.
    pub fn notes(&self) -> Vec<String> {
        let limited: u64 = self.runs.iter().filter_map(|run| run.sample.errors.get("rate_limited")).sum();
        let mut notes = Vec::new();
        if limited > 0 {
            notes.push(format!(
                "NOTE: {limited} requests were answered 429 rate_limited. So these numbers show the rate limit for one \
                 client, not the speed of the cluster. Start each node with a higher --campaigns-per-minute, for \
                 example 100000000, and run this again."
            ));
        }
        notes
    }

    /// Whether no operation succeeded in some run.
    pub fn has_empty_run(&self) -> bool {
        self.runs.iter().any(|run| run.sample.latencies_us.is_empty())
    }

    /// The whole report.
    pub fn to_json(&self) -> serde_json::Value {
        let run = |run: &Run| {
            let measured = |value: f64| (!run.sample.latencies_us.is_empty()).then_some(value);
            json!({
                "op": run.op,
                "connections": run.connections,
                "ops": run.sample.latencies_us.len(),
                "elapsed_ms": millis(run.sample.elapsed),
                "ops_per_second": run.sample.ops_per_second(),
                "p50_ms": measured(run.sample.percentile_ms(50.0)),
                "p99_ms": measured(run.sample.percentile_ms(99.0)),
                "max_ms": measured(run.sample.max_ms()),
                "errors": run.sample.errors,
            })
        };
        json!({
            "schema_version": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "urls": self.urls,
            "duration_ms": millis(self.duration),
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
            "notes": self.notes(),
        })
    }
}

#[cfg(test)]
mod tests;
