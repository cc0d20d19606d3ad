use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::clock::{Clock, ClockReading, SystemClock, WALL_TIME_MIN};
use crate::config::RawConfig;
use crate::domain::WallTime;

/// A machine's clock, with a wall clock that a test sets.
struct SetByTest {
    monotonic: Arc<SystemClock>,
    wall_ms: AtomicU64,
}

impl Clock for SetByTest {
    fn now(&self) -> ClockReading {
        self.monotonic.now()
    }

    fn wall_time(&self) -> WallTime {
        WallTime(self.wall_ms.load(Ordering::Relaxed))
    }
}

async fn eventually(holds: impl Fn() -> bool) -> bool {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_whose_clock_is_not_set_founds_no_cluster_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = Some(folder.path().join("data"));
    let config = Config::new(RawConfig { name: Some("n1".into()), data_dir, ..RawConfig::default() }).unwrap();
    let just_before = AtomicU64::new(WALL_TIME_MIN.0 - 1);
    let clock = Arc::new(SetByTest { monotonic: SystemClock::start().unwrap(), wall_ms: just_before });
    let outside = Outside { clock: clock.clone(), ..Outside::real().unwrap() };
    let unused = "127.0.0.1:1".parse().unwrap();
    let node = Arc::new(Node::start(&config, outside, unused, unused).await.unwrap());
    let founding = node.clone();
    let founding = tokio::spawn(async move { founding.founding_failed().await });

    let says_why = || node.consensus().readiness().is_err_and(|reason| reason.contains("clock is not set"));
    assert!(eventually(says_why).await, "{:?}", node.consensus().readiness());
    assert!(!node.consensus().has_log());

    clock.wall_ms.store(WALL_TIME_MIN.0, Ordering::Relaxed);
    assert!(eventually(|| node.consensus().readiness().is_ok()).await, "{:?}", node.consensus().readiness());
    let floor = || node.consensus().replica().position().counters.last_fencing_token;
    assert!(eventually(|| floor() == WALL_TIME_MIN.0).await, "the floor is {}", floor());
    founding.abort();
    node.consensus().shut_down().await;
}
