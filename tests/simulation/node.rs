//! A node on a simulated machine: the real one, put together from the real parts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate::config::{Config, Peer, RaftTuning, RawConfig};
use quorate::consensus::Consensus;
use quorate::node::{Node, Outside};
use quorate::random::Random;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::clock::SimulatedClock;
use crate::disk::SimulatedDisk;
use crate::network::{CLIENT_PORT, PEER_PORT, SimulatedCarrier, host, serve};

/// A simulated machine, which outlives the node's process.
pub struct Machine {
    pub place: usize,
    pub disk: Arc<SimulatedDisk>,
    pub wall_offset_ms: Arc<AtomicI64>,
    rate_ppm: i64,
    tuning: RaftTuning,
    random: Arc<SeededRandom>,
    /// What runs there, while it does.
    running: Mutex<Option<Running>>,
    /// Why the process has ended by itself, if it has.
    ended: Mutex<Option<String>>,
    told_to_stop: Notify,
    is_ready: AtomicBool,
    readiness: Mutex<Result<(), String>>,
    pub starts: AtomicU64,
    /// Snapshots that its process sent and another took over.
    pub snapshots_sent: Arc<AtomicU64>,
}

#[derive(Clone)]
struct Running {
    consensus: Consensus,
    clock: Arc<SimulatedClock>,
}

/// Randomness that follows from a seed.
pub struct SeededRandom(Mutex<StdRng>);

impl SeededRandom {
    fn draw(&self) -> u64 {
        self.0.lock().unwrap().random()
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().unwrap().fill_bytes(bytes);
    }
}

impl Machine {
    pub fn new(place: usize, root: PathBuf, rate_ppm: i64, forgets: bool, tuning: RaftTuning, seed: u64) -> Self {
        Self {
            place,
            disk: Arc::new(SimulatedDisk::new(root, forgets)),
            wall_offset_ms: Arc::default(),
            rate_ppm,
            tuning,
            random: Arc::new(SeededRandom(Mutex::new(StdRng::seed_from_u64(seed)))),
            running: Mutex::default(),
            ended: Mutex::default(),
            told_to_stop: Notify::new(),
            is_ready: AtomicBool::new(false),
            readiness: Mutex::new(Ok(())),
            starts: AtomicU64::new(0),
            snapshots_sent: Arc::default(),
        }
    }

    /// What is agreed on there, while its process runs.
    pub fn consensus(&self) -> Option<Consensus> {
        self.running.lock().unwrap().as_ref().map(|running| running.consensus.clone())
    }

    /// Its clock, while its process runs.
    pub fn clock(&self) -> Option<Arc<SimulatedClock>> {
        self.running.lock().unwrap().as_ref().map(|running| running.clock.clone())
    }

    /// Whether its node says that it can serve.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// For people.
    pub fn describe(&self) -> String {
        let status = self.consensus().map(|consensus| consensus.status());
        format!("n{} {:?} {status:?}", self.place + 1, self.readiness.lock().unwrap())
    }

    /// Forgets what ran: it has been killed, and its files must be closed before another process opens them.
    pub fn let_go(&self) {
        *self.running.lock().unwrap() = None;
        self.is_ready.store(false, Ordering::Relaxed);
    }

    /// Why the process has ended by itself, if it has since this was asked last.
    pub fn take_end(&self) -> Option<String> {
        self.ended.lock().unwrap().take()
    }

    /// Asks the process to end in good order, as SIGTERM does.
    pub fn tell_to_stop(&self) {
        self.told_to_stop.notify_one();
    }

    fn config(&self) -> Config {
        let raw = RawConfig {
            name: Some(host(self.place)),
            data_dir: Some(self.disk.data_dir()),
            campaigns_per_minute: Some(u32::MAX),
            max_watches_per_client: Some(1_000),
            ..RawConfig::default()
        };
        let mut config = Config::new(raw).expect("a valid configuration");
        config.cluster_secret = Some("the secret of simulated clusters".to_owned().into());
        config.peers =
            (0..3).map(|place| Peer { name: host(place), address: format!("{}:{PEER_PORT}", host(place)) }).collect();
        config.raft = self.tuning.clone();
        config
    }

    /// One life of the process.
    pub async fn run(self: Arc<Self>) -> turmoil::Result {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let why = match self.live().await {
            Ok(()) => "told to stop".to_owned(),
            Err(error) => error.to_string(),
        };
        self.let_go();
        *self.ended.lock().unwrap() = Some(why);
        Ok(())
    }

    async fn keep_asking_whether_ready(&self, consensus: &Consensus) {
        loop {
            let readiness = consensus.readiness();
            self.is_ready.store(readiness.is_ok(), Ordering::Relaxed);
            *self.readiness.lock().unwrap() = readiness;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn live(&self) -> Result<(), Box<dyn std::error::Error>> {
        let config = self.config();
        let origin = self.random.draw() >> 20;
        let clock = Arc::new(SimulatedClock::new(origin, self.rate_ppm, self.wall_offset_ms.clone()));
        let outside = Outside {
            clock: clock.clone(),
            random: self.random.clone(),
            carrier: Arc::new(SimulatedCarrier::new(self.snapshots_sent.clone())),
            disk: self.disk.clone(),
        };
        let address = |port| format!("127.0.0.1:{port}").parse().expect("an address");
        let node = Node::start(&config, outside, address(CLIENT_PORT), address(PEER_PORT)).await?;
        let consensus = node.consensus().clone();
        *self.running.lock().unwrap() = Some(Running { consensus: consensus.clone(), clock });
        tokio::select! {
            biased;
            () = self.told_to_stop.notified() => {}
            error = consensus.stopped() => return Err(error.into()),
            error = node.founding_failed() => return Err(error.into()),
            () = self.keep_asking_whether_ready(&consensus) => {}
            served = serve(PEER_PORT, node.peer_router()) => served?,
            served = serve(CLIENT_PORT, node.client_router(&config)) => served?,
        }
        self.is_ready.store(false, Ordering::Relaxed);
        consensus.hold_back("this node is stopping");
        consensus.hand_over(Instant::now() + Duration::from_secs(2)).await;
        consensus.shut_down().await;
        Ok(())
    }
}
