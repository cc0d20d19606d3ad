//! Starts three real nodes, each in a network of its own on one bridge and, if the scenario needs it, on a disk of its
//! own. Everything that is started here ends with the lab, however the run ends. A node is named by its place: 0, 1 or
//! 2.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::brake::Brake;
use crate::disk_image::{Disk, run};
use crate::leaks::Search;
use crate::network::{Network, ip};
use crate::node::Node;
use crate::outside::now;
use crate::proxy::Proxies;
use crate::wall::WallClock;
use crate::workload::history::{MILLI, Moment, SECOND};
use crate::workload::outside::sleep;

/// An environment variable. It is set in a process that has a network and mounts of its own, which end with it.
pub const INSIDE: &str = "QUORATE_CHAOS_INSIDE";

/// Where the files of the wall clocks are, and where libfaketime has its own.
const CLOCKS: &str = "/dev/shm";

/// Whether this process has a network and mounts of its own.
pub fn is_apart() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// What a scenario needs for its nodes beside processes and folders.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gear {
    /// Each node gets a disk of its own whose power can be cut.
    pub disks: bool,
    /// Each disk can be throttled.
    pub brakes: bool,
    /// Each node gets a network of its own whose cables can be cut.
    pub networks: bool,
    /// The peer port of each node is behind a proxy of ours. The proxy knows nodes by their addresses, so this needs
    /// networks of our own as well.
    pub proxies: bool,
    /// Each node gets a wall clock of its own.
    pub wall_clocks: bool,
}

pub struct Lab {
    pub nodes: Vec<Node>,
    pub folder: tempfile::TempDir,
    proxies: Option<Proxies>,
    http: reqwest::Client,
}

/// How many tracers a node sends to each other node: 1, 2 or 4. So the sum that arrives says which nodes were heard.
pub fn tracers(from: usize) -> u64 {
    1 << from
}

impl Lab {
    /// Starts three nodes, and waits until they are ready. If this process has no network of its own, the nodes get
    /// loopback addresses, and can't be cut off from each other.
    ///
    /// # Errors
    /// The lab is broken. `means` has found out before whether this machine has the gear at all.
    pub async fn start(gear: Gear, args: &[&str]) -> Result<Lab, String> {
        let folder = tempfile::Builder::new().prefix("quorate-chaos-").tempdir().map_err(|error| error.to_string())?;
        let secret = write_secret(folder.path()).map_err(|error| error.to_string())?;
        let addresses = Addresses::new(gear);
        if is_apart() {
            make_bridge()?;
        }
        let proxies = if gear.proxies { Some(addresses.start_proxies().await?) } else { None };
        if gear.wall_clocks {
            // libfaketime leaves files in this folder when its process is killed. Our own copy of the folder ends with
            // us. `strictatime` makes the file system note each reading of a clock's file.
            run(Command::new("mount").args(["-t", "tmpfs", "-o", "strictatime", "tmpfs", CLOCKS]))?;
        }
        let http = reqwest::Client::builder().no_proxy().build().map_err(|error| error.to_string())?;
        let mut lab = Lab { nodes: Vec::new(), folder, proxies, http };
        for place in 0..3 {
            let mut all = vec!["--peers".to_owned(), addresses.peers()];
            all.extend(["--cluster-secret-file".to_owned(), secret.display().to_string()]);
            all.extend(args.iter().map(ToString::to_string));
            let node = make_node(place, addresses.node(place), gear, all, lab.folder.path())?;
            lab.nodes.push(node);
        }
        for node in 0..3 {
            lab.start_node(node);
        }
        assert!(lab.healed(60 * SECOND).await.is_some(), "three fresh nodes do not become ready\n{}", lab.logs());
        Ok(lab)
    }

    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("http://{}:7400", node.address)).collect()
    }

    pub fn start_node(&mut self, place: usize) {
        self.nodes[place].start();
    }

    pub fn kill(&mut self, place: usize) {
        self.nodes[place].kill();
    }

    pub fn signal(&mut self, place: usize, signal: Signal) {
        self.nodes[place].signal(signal);
    }

    /// The exit code of a node that has ended by itself. The outer `None` means that it still runs.
    pub fn ended(&mut self, place: usize) -> Option<Option<i32>> {
        let child = self.nodes[place].child.as_mut()?;
        let status = child.try_wait().unwrap()?;
        self.nodes[place].child = None;
        Some(status.code())
    }

    pub fn is_running(&self, place: usize) -> bool {
        self.nodes[place].child.is_some()
    }

    /// From now on everything that `from` sends to `to` is lost without an error, as with a broken cable. Its frames go
    /// to a hardware address that no node has.
    pub fn cut(&self, from: usize, to: usize) {
        self.address_book(from, to, "02:00:00:00:00:01");
    }

    /// Undoes [`Lab::cut`].
    pub fn join(&self, from: usize, to: usize) {
        let right = &self.nodes[to].network.as_ref().expect("only networks are cut").hardware_address;
        self.address_book(from, to, right);
    }

    pub fn join_all(&self) {
        for (from, to) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            self.join(from, to);
        }
    }

    /// Sets the hardware address to which `from` sends frames for `to`.
    fn address_book(&self, from: usize, to: usize, hardware_address: &str) {
        let network = self.nodes[from].network.as_ref().expect("only networks are cut");
        let (to, end) = (self.nodes[to].address, &network.end);
        network.ip(&format!("neigh replace {to} lladdr {hardware_address} dev {end} nud permanent")).unwrap();
    }

    /// Sends datagrams from each node's network to both others, to a port without a listener. [`tracers`] says how
    /// many.
    pub fn send_tracers(&self) {
        for (from, node) in self.nodes.iter().enumerate() {
            let network = node.network.as_ref().expect("only networks are cut");
            for other in self.nodes.iter().filter(|other| other.name != node.name) {
                let send = format!("for _ in {{1..{}}}; do echo > /dev/udp/{}/9; done", tracers(from), other.address);
                run(network.enter().args(["bash", "-c", &send])).unwrap();
            }
        }
    }

    /// How many datagrams for a port without a listener each node's network has received, by its kernel's counters. The
    /// nodes themselves send no datagrams.
    pub fn datagrams_for_no_listener(&self) -> [u64; 3] {
        [0, 1, 2].map(|place| {
            let network = self.nodes[place].network.as_ref().expect("only networks are cut");
            let counts = std::fs::read_to_string(format!("/proc/{}/net/snmp", network.keeper.id())).unwrap();
            let mut lines = counts.lines().filter_map(|line| line.strip_prefix("Udp: "));
            let (names, counts) = (lines.next().unwrap(), lines.next().unwrap());
            let mut counts = names.split(' ').zip(counts.split(' '));
            counts.find(|(name, _)| *name == "NoPorts").unwrap().1.parse().unwrap()
        })
    }

    /// Drops everything that these disks have not written, and kills their nodes. Then the disks work again.
    pub fn cut_power(&mut self, places: &[usize]) {
        for place in places {
            self.disk(*place).cut_power();
        }
        for place in places {
            self.nodes[*place].kill();
            self.disk(*place).unmount().unwrap();
            self.disk(*place).mount().unwrap();
        }
    }

    pub fn disk(&self, place: usize) -> &Disk {
        self.nodes[place].disk.as_ref().expect("this scenario asks for disks")
    }

    pub fn brake(&self, place: usize) -> &Brake {
        self.nodes[place].brake.as_ref().expect("this scenario asks for brakes")
    }

    pub fn wall_clock(&self, place: usize) -> &WallClock {
        self.nodes[place].wall_clock.as_ref().expect("this scenario asks for wall clocks")
    }

    /// By how many seconds a node's wall clock differs from ours, according to the `Date` of a response.
    pub async fn wall_clock_error(&self, place: usize) -> Option<i64> {
        let url = format!("http://{}:7400/livez", self.nodes[place].address);
        let response = self.http.get(url).timeout(Duration::from_secs(1)).send().await.ok()?;
        let date = jiff::fmt::rfc2822::parse(response.headers().get("date")?.to_str().ok()?).ok()?;
        Some(date.timestamp().as_second() - jiff::Timestamp::now().as_second())
    }

    /// How often these words are in a node's log.
    pub fn count_in_log(&self, place: usize, words: &str) -> usize {
        std::fs::read_to_string(&self.nodes[place].log).unwrap_or_default().matches(words).count()
    }

    pub fn proxies(&self) -> &Proxies {
        self.proxies.as_ref().expect("this scenario asks for proxies")
    }

    /// Waits until a node has ended by itself, and returns its exit code.
    pub async fn end_of(&mut self, place: usize, limit: Moment) -> Result<Option<i32>, String> {
        let deadline = now() + limit;
        loop {
            if let Some(code) = self.ended(place) {
                return Ok(code);
            }
            if now() > deadline {
                return Err(format!("n{} has not ended within {} s", place + 1, limit / SECOND));
            }
            sleep(10 * MILLI).await;
        }
    }

    pub async fn report(&self, place: usize) -> Option<Value> {
        self.get(place, "/status").await.map(|(_, body)| body)
    }

    async fn get(&self, place: usize, path: &str) -> Option<(u16, Value)> {
        let url = format!("http://{}:7400{path}", self.nodes[place].address);
        let response = self.http.get(url).timeout(Duration::from_secs(1)).send().await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.json().await.ok()?))
    }

    /// Waits until all nodes are ready, and returns that moment.
    pub async fn healed(&self, limit: Moment) -> Option<Moment> {
        let started = now();
        while now() < started + limit {
            let mut ready = true;
            for place in 0..3 {
                ready = ready && self.get(place, "/readyz").await.is_some_and(|(status, _)| status == 200);
            }
            if ready {
                return Some(now());
            }
            sleep(20 * MILLI).await;
        }
        None
    }

    /// Waits until a node reports that it is raft leader. If two do, the one with the higher raft term counts.
    pub async fn raft_leader(&self, limit: Moment) -> Option<usize> {
        let deadline = now() + limit;
        loop {
            let mut latest = None;
            for place in 0..3 {
                let Some(report) = self.report(place).await.filter(|report| report["role"] == "raft_leader") else {
                    continue;
                };
                latest = latest.max(Some((report["raft_term"].as_u64(), place)));
            }
            if latest.is_some() || now() > deadline {
                return latest.map(|(_, place)| place);
            }
            sleep(20 * MILLI).await;
        }
    }

    /// The highest raft term of all nodes: each raft election raises it.
    pub async fn raft_term(&self) -> u64 {
        let mut highest = 0;
        for place in 0..3 {
            let report = self.report(place).await;
            highest = highest.max(report.and_then(|report| report["raft_term"].as_u64()).unwrap_or(0));
        }
        highest
    }

    /// The last lines of each node's log.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let log = std::fs::read_to_string(&node.log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            text += &format!("--- {} ---\n{}\n", node.name, lines[lines.len().saturating_sub(15)..].join("\n"));
        }
        text
    }

    /// Searches the logs and everything that the nodes have stored for secrets. Kills the nodes first, so that no file
    /// disappears during the search.
    pub fn leaks(&mut self, search: &Search) -> Vec<String> {
        (0..3).for_each(|place| self.kill(place));
        let places = self.nodes.iter().flat_map(|node| [&node.log, &node.data_dir]);
        places.flat_map(|place| search.look_into(place)).collect()
    }
}

/// Where the nodes listen, and where the others reach them.
struct Addresses {
    /// The first three numbers of the nodes' addresses.
    network: [u8; 3],
    /// Whether the others reach a node through a proxy.
    proxies: bool,
}

impl Addresses {
    fn new(gear: Gear) -> Addresses {
        // Without a network of our own, each process takes other loopback addresses.
        let own = u8::try_from(std::process::id() % 200).unwrap_or(0);
        Addresses { network: if is_apart() { [10, 99, 0] } else { [127, 99, own] }, proxies: gear.proxies }
    }

    fn node(&self, place: u8) -> Ipv4Addr {
        let [a, b, c] = self.network;
        Ipv4Addr::new(a, b, c, place + 1)
    }

    /// The address that the others know.
    fn front(&self, place: u8) -> Ipv4Addr {
        if self.proxies { Ipv4Addr::new(10, 99, 0, 101 + place) } else { self.node(place) }
    }

    fn peers(&self) -> String {
        let peers: Vec<String> = (0..3).map(|place| format!("n{}={}:7401", place + 1, self.front(place))).collect();
        peers.join(",")
    }

    async fn start_proxies(&self) -> Result<Proxies, String> {
        for place in 0..3 {
            ip(&format!("addr add {}/24 dev chaos0", self.front(place)))?;
        }
        let fronts = [0, 1, 2].map(|place| (self.front(place), 7401).into());
        let nodes = [0, 1, 2].map(|place| (self.node(place), 7401).into());
        Proxies::start(fronts, nodes).await
    }
}

fn write_secret(folder: &Path) -> std::io::Result<PathBuf> {
    let secret = folder.join("secret");
    std::fs::write(&secret, "canary-secret of the cluster")?;
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(secret)
}

/// Makes the bridge that connects the nodes' networks with this process.
fn make_bridge() -> Result<(), String> {
    ip("link set lo up")?;
    // An earlier lab may have left its bridge. Usually there is none, and this fails.
    let _ = ip("link del chaos0");
    ip("link add chaos0 type bridge")?;
    ip("link set chaos0 up")?;
    ip("addr add 10.99.0.254/24 dev chaos0")?;
    Ok(())
}

fn make_node(place: u8, address: Ipv4Addr, gear: Gear, args: Vec<String>, folder: &Path) -> Result<Node, String> {
    let name = format!("n{}", place + 1);
    let disk = gear.disks.then(Disk::make).transpose()?;
    let brake = gear.brakes.then(Brake::make).transpose()?;
    let data_dir = disk.as_ref().map_or_else(|| folder.join(&name), Disk::data_dir);
    let clock_file = Path::new(CLOCKS).join(format!("{name}.clock"));
    let wall_clock = gear.wall_clocks.then(|| WallClock::make(clock_file)).transpose()?;
    let network = if is_apart() { Some(Network::make(&name, address)?) } else { None };
    let log = folder.join(format!("{name}.log"));
    Ok(Node { name, address, args, data_dir, log, child: None, network, disk, brake, wall_clock })
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.nodes.clear();
        if is_apart() {
            let _ = ip("link del chaos0");
        }
    }
}
