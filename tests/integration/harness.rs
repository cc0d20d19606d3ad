//! Starts nodes and kills them. No node outlives its test.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The deadline for everything that should take a moment. It is long because other tests keep the machine busy.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Tests that do not set this limit themselves get one that is never reached.
const CAMPAIGNS_PER_MINUTE: &str = "--campaigns-per-minute";

/// The secret of every test cluster. It is random, so no piece of it is in any output by chance.
pub const CLUSTER_SECRET: &str = "kT5vQ0xN2bW9sL7gH4jD8fR1mZ6cY3pA";

/// A loopback address that no other node has, so that tests never compete for ports: 127.x.y.z, where x and y come from
/// the id of this process and z is a counter.
pub fn fresh_address() -> Ipv4Addr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let host = NEXT.fetch_add(1, Ordering::Relaxed);
    let network = std::process::id() % 20_000;
    let [high, low] = u16::try_from(network).unwrap().to_be_bytes();
    assert!(host < 250, "more nodes than addresses");
    Ipv4Addr::new(127, high + 20, low, u8::try_from(host).unwrap())
}

/// How a node is started.
#[derive(Clone)]
pub struct NodeSettings {
    pub name: String,
    pub address: Ipv4Addr,
    pub data_dir: PathBuf,
    pub args: Vec<String>,
    /// If set, a shell calls `ulimit` with these arguments and then becomes the node.
    pub ulimit: Option<&'static str>,
}

impl NodeSettings {
    /// A cluster of one node, with its data in `folder`.
    pub fn single(folder: &Path) -> NodeSettings {
        let (name, data_dir) = ("n1".into(), folder.join("n1"));
        NodeSettings { name, address: fresh_address(), data_dir, args: Vec::new(), ulimit: None }
    }

    pub fn url(&self) -> String {
        format!("http://{}:7400", self.address)
    }

    pub fn peer_url(&self) -> String {
        format!("http://{}:7401", self.address)
    }

    pub fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_quorate");
        let mut command = Command::new(if self.ulimit.is_some() { "/bin/sh" } else { program });
        if let Some(limit) = self.ulimit {
            command.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), program]);
        }
        command
            .args(["serve", "--name", &self.name])
            .args(["--listen", &format!("{}:7400", self.address)])
            .args(["--peer-listen", &format!("{}:7401", self.address)])
            .arg("--data-dir")
            .arg(&self.data_dir)
            .args(&self.args)
            .env_clear()
            // Only nodes that were built with planted bugs read it.
            .envs(std::env::var_os("QUORATE_PLANTED_BUG").map(|bug| ("QUORATE_PLANTED_BUG", bug)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !self.args.iter().any(|arg| arg == CAMPAIGNS_PER_MINUTE) {
            command.args([CAMPAIGNS_PER_MINUTE, "1000000"]);
        }
        command
    }
}

/// A node that runs, or has run.
pub struct Node {
    pub settings: NodeSettings,
    child: Option<Child>,
    output: Arc<Mutex<String>>,
}

impl Node {
    pub fn start(settings: NodeSettings) -> Node {
        let mut node = Node { settings, child: None, output: Arc::default() };
        node.start_again();
        node
    }

    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "{} is running already", self.settings.name);
        let mut child = self.settings.command().spawn().unwrap();
        for stream in [
            Box::new(child.stdout.take().unwrap()) as Box<dyn std::io::Read + Send>,
            Box::new(child.stderr.take().unwrap()),
        ] {
            let output = self.output.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let mut output = output.lock().unwrap();
                    output.push_str(&line);
                    output.push('\n');
                }
            });
        }
        self.child = Some(child);
    }

    pub fn url(&self) -> String {
        self.settings.url()
    }

    /// Everything that the node has printed so far.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the node is running").id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Kills the node with SIGKILL, and waits until the process has ended.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Waits until the node ends by itself, and returns its exit code.
    pub async fn exit_code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.as_mut().expect("the node is running").try_wait().unwrap() {
                self.child = None;
                return status.code();
            }
            assert!(Instant::now() < deadline, "{} is still running:\n{}", self.settings.name, self.output());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn is_ready(&self) -> bool {
        http().get(format!("{}/readyz", self.url())).send().await.is_ok_and(|answer| answer.status() == 200)
    }

    pub async fn status(&self) -> Option<Value> {
        http().get(format!("{}/status", self.url())).send().await.ok()?.json().await.ok()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- output of {} ---\n{}", self.settings.name, self.output());
        }
    }
}

/// The nodes of one cluster, and the folder with their data.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub _folder: tempfile::TempDir,
}

impl Cluster {
    /// One node with default settings, ready.
    pub async fn single() -> Cluster {
        Self::single_with(&[]).await
    }

    pub async fn single_with(args: &[&str]) -> Cluster {
        let cluster = Self::single_not_ready(args, None);
        cluster.ready().await;
        cluster
    }

    /// One node with a peer listener, because it is the only node in its list of peers. A shell calls `ulimit` first.
    pub async fn single_with_peer_listener(ulimit: Option<&'static str>) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let secret = write_secret(folder.path(), "cluster-secret", CLUSTER_SECRET);
        let settings = NodeSettings::single(folder.path());
        let peers = format!("n1={}:7401", settings.address);
        let args = ["--peers", &peers, "--cluster-secret-file", secret.to_str().unwrap()].map(ToOwned::to_owned);
        let settings = NodeSettings { args: args.into(), ulimit, ..settings };
        let cluster = Cluster { nodes: vec![Node::start(settings)], _folder: folder };
        cluster.ready().await;
        cluster
    }

    /// One node, started by a shell that has called `ulimit` with these arguments.
    pub fn single_not_ready(args: &[&str], ulimit: Option<&'static str>) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let args = args.iter().map(ToString::to_string).collect();
        let settings = NodeSettings { args, ulimit, ..NodeSettings::single(folder.path()) };
        Cluster { nodes: vec![Node::start(settings)], _folder: folder }
    }

    /// Three nodes with a cluster secret, ready.
    pub async fn three() -> Cluster {
        Self::three_with(&[]).await
    }

    pub async fn three_with(args: &[&str]) -> Cluster {
        let mut cluster = Self::three_not_started(args);
        cluster.nodes.iter_mut().for_each(Node::start_again);
        cluster.ready().await;
        cluster
    }

    pub fn three_not_started(args: &[&str]) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let secret = write_secret(folder.path(), "cluster-secret", CLUSTER_SECRET);
        let names = ["n1", "n2", "n3"];
        let addresses = names.map(|_| fresh_address());
        let peers: Vec<String> = names.iter().zip(addresses).map(|(name, ip)| format!("{name}={ip}:7401")).collect();
        let nodes = names.iter().zip(addresses).map(|(name, address)| {
            let mut args: Vec<String> = args.iter().map(ToString::to_string).collect();
            args.extend(["--peers".into(), peers.join(",")]);
            args.extend(["--cluster-secret-file".into(), secret.display().to_string()]);
            let (name, data_dir) = (name.to_string(), folder.path().join(name));
            let settings = NodeSettings { name, address, data_dir, args, ulimit: None };
            Node { settings, child: None, output: Arc::default() }
        });
        Cluster { nodes: nodes.collect(), _folder: folder }
    }

    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Node::url).collect()
    }

    /// Waits until every node that runs is ready.
    pub async fn ready(&self) {
        eventually("all nodes are ready", || async {
            for node in self.nodes.iter().filter(|node| node.child.is_some()) {
                if !node.is_ready().await {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }

    /// The place of the raft leader in `nodes`. Waits until exactly one running node says that it is raft leader.
    pub async fn raft_leader(&self) -> usize {
        eventually("one raft leader", || async {
            let mut raft_leaders = Vec::new();
            for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.child.is_some()) {
                if node.status().await?["role"] == "raft_leader" && node.is_ready().await {
                    raft_leaders.push(place);
                }
            }
            (raft_leaders.len() == 1).then(|| raft_leaders[0])
        })
        .await
    }

    /// The place of a running raft follower.
    pub async fn follower(&self) -> usize {
        let raft_leader = self.raft_leader().await;
        (0..self.nodes.len()).find(|place| *place != raft_leader && self.nodes[*place].child.is_some()).unwrap()
    }

    /// Waits until all running nodes have applied the same entries, and checks that their states are then equal.
    pub async fn converged(&self) {
        let digests = eventually("the same applied index on all nodes", || async {
            let mut seen = Vec::new();
            for node in self.nodes.iter().filter(|node| node.child.is_some()) {
                let status = node.status().await?;
                seen.push((status["applied_index"].as_u64()?, status["state_digest"].clone()));
            }
            seen.iter().all(|(index, _)| *index == seen[0].0).then_some(seen)
        })
        .await;
        assert!(digests.iter().all(|(_, digest)| *digest == digests[0].1), "{digests:?}");
    }
}

pub fn write_secret(folder: &Path, name: &str, content: &str) -> PathBuf {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.join(name);
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    file.write_all(content.as_bytes()).unwrap();
    path
}

/// Polls until `look` finds something. Panics if that takes longer than [`PATIENCE`].
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "still not true after {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// An HTTP client that gives up idle connections after 5 s. The node closes them after 10 s, and a request that is sent
/// at that moment would fail.
pub fn http() -> reqwest::Client {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(70));
    client.pool_idle_timeout(Duration::from_secs(5)).build().unwrap()
}
