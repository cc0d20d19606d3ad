//! Measures how long the cluster committed nothing: a client cannot renew in that time, and is not to blame.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

/// If the cluster commits nothing for longer than this, a leadership with a lease of 5 s may be lost. Its authority
/// ends after 4 s, and up to 1.85 s of that have passed when the renewal is sent. Such a gap can come from a busy disk
/// or busy processors.
const EXCUSE: Duration = Duration::from_millis(1_700);

/// Writes all the time, at each node in turn, and remembers the longest time without a success.
pub struct Probe {
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    last: Instant,
    longest: Duration,
}

impl Probe {
    pub fn start(urls: Vec<String>) -> Probe {
        let state = Arc::new(Mutex::new(State { last: Instant::now(), longest: Duration::ZERO }));
        let (seen, client) = (state.clone(), crate::harness::http());
        let task = tokio::spawn(async move {
            for count in 0_usize.. {
                let url = format!("{}/elections/probe-{:08}/campaign", urls[count % urls.len()], count % 10_000);
                let request = client.post(url).json(&json!({"candidate_id": "probe", "ttl_seconds": 5}));
                let answer = request.timeout(Duration::from_millis(500)).send().await;
                if answer.is_ok_and(|answer| answer.status().is_success()) {
                    let mut seen = seen.lock().unwrap();
                    seen.longest = seen.longest.max(seen.last.elapsed());
                    seen.last = Instant::now();
                }
                tokio::time::sleep(Duration::from_millis(40)).await;
            }
        });
        Probe { state, task }
    }

    /// The longest gap, if it is long enough to lose a lease of 5 s. Then measures from the beginning.
    pub fn excuse(&self) -> Option<Duration> {
        Some(self.longest_gap()).filter(|gap| *gap > EXCUSE)
    }

    /// The longest time in which the cluster committed nothing. Then measures from the beginning.
    pub fn longest_gap(&self) -> Duration {
        let mut state = self.state.lock().unwrap();
        std::mem::take(&mut state.longest).max(state.last.elapsed())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.task.abort();
    }
}
