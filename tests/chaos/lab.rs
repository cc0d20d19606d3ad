//! Three nodes, each in a network of its own on one bridge and, if asked for, on a disk of its own. Everything that
//! is started here is ended here, however the run ends.

use std::net::Ipv4Addr;
use std::path::Path;
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
use crate::workload::history::{Moment, SECOND};
use crate::workload::outside::sleep;

/// Set for a process that has a network and mounts of its own, which end with it.
pub const INSIDE: &str = "QUORATE_CHAOS_INSIDE";

const CLOCKS: &str = "/dev/shm";

/// Whether this process has a network and mounts of its own.
pub fn is_apart() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// What nodes are given, beyond processes and folders.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gear {
    /// A disk of its own for each, whose power can be cut.
    pub disks: bool,
    /// A brake on each disk.
    pub brakes: bool,
    /// A network of its own for each, whose cables can be cut.
    pub networks: bool,
    /// A proxy of ours before the peer port of each; takes networks, in which nodes are known by their addresses.
    pub proxies: bool,
    /// A wall clock of its own for each.
    pub wall_clocks: bool,
}

pub struct Lab {
    pub nodes: Vec<Node>,
    pub folder: tempfile::TempDir,
    proxies: Option<Proxies>,
    http: reqwest::Client,
}

/// How many tracers a node sends to each other: so the sum of those that arrive says whose they are.
pub fn tracers(from: usize) -> u64 {
    1 << from
}

impl Lab {
    /// Starts three nodes. Where this process has no network of its own, they are on loopback addresses, and can't
    /// be cut off. An error says what is broken: whether the gear can be had here is known by then.
    pub async fn start(gear: Gear, args: &[&str]) -> Result<Lab, String> {
        let networks = is_apart();
        let folder = tempfile::Builder::new().prefix("quorate-chaos-").tempdir().map_err(|error| error.to_string())?;
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "canary-secret of the cluster").map_err(|error| error.to_string())?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&secret, private).map_err(|error| error.to_string())?;
        let own = u8::try_from(std::process::id() % 200).unwrap_or(0);
        let address = |place: u8| match networks {
            true => Ipv4Addr::new(10, 99, 0, place + 1),
            false => Ipv4Addr::new(127, 99, own, place + 1),
        };
        let front = |place: u8| if gear.proxies { Ipv4Addr::new(10, 99, 0, 101 + place) } else { address(place) };
        let peers: Vec<String> = (0..3).map(|place| format!("n{}={}:7401", place + 1, front(place))).collect();
        if networks {
            ip("link set lo up")?;
            // A lab before this one has left it.
            let _ = ip("link del chaos0");
            ip("link add chaos0 type bridge")?;
            ip("link set chaos0 up")?;
            ip("addr add 10.99.0.254/24 dev chaos0")?;
        }
        let proxies = if gear.proxies {
            for place in 0..3 {
                ip(&format!("addr add {}/24 dev chaos0", front(place)))?;
            }
            let all = |address: &dyn Fn(u8) -> Ipv4Addr| [0, 1, 2].map(|place| (address(place), 7401).into());
            Some(Proxies::start(all(&front), all(&address)).await?)
        } else {
            None
        };
        if gear.wall_clocks {
            // A killed process leaves what libfaketime keeps there. Our own copy of it ends with us.
            // Our wall clocks are there too, since of this file system we know that it notes when a file was read.
            run(Command::new("mount").args(["-t", "tmpfs", "-o", "strictatime", "tmpfs", CLOCKS]))?;
        }
        let http = reqwest::Client::builder().no_proxy().build().map_err(|error| error.to_string())?;
        let mut lab = Lab { nodes: Vec::new(), folder, proxies, http };
        for place in 0..3 {
            let name = format!("n{}", place + 1);
            let disk = gear.disks.then(Disk::make).transpose()?;
            let brake = gear.brakes.then(Brake::make).transpose()?;
            let data_dir = disk.as_ref().map_or_else(|| lab.folder.path().join(&name), Disk::data_dir);
            let clock_file = Path::new(CLOCKS).join(format!("{name}.clock"));
            let wall_clock = gear.wall_clocks.then(|| WallClock::make(clock_file)).transpose()?;
            let network = if networks { Some(Network::make(&name, address(place))?) } else { None };
            let mut all = vec!["--peers".to_owned(), peers.join(",")];
            all.extend(["--cluster-secret-file".to_owned(), secret.display().to_string()]);
            all.extend(args.iter().map(ToString::to_string));
            let log = lab.folder.path().join(format!("{name}.log"));
            let address = address(place);
            lab.nodes.push(Node {
                name,
                address,
                args: all,
                data_dir,
                log,
                child: None,
                network,
                disk,
                brake,
                wall_clock,
            });
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

    /// Whether it ended by itself, and if so, how.
    pub fn ended(&mut self, place: usize) -> Option<Option<i32>> {
        let child = self.nodes[place].child.as_mut()?;
        let status = child.try_wait().unwrap()?;
        self.nodes[place].child = None;
        Some(status.code())
    }

    pub fn is_running(&self, place: usize) -> bool {
        self.nodes[place].child.is_some()
    }

    /// What `from` sends to `to` is lost from now on, in silence, as on a broken cable: its frames go to a hardware
    /// address that nobody has.
    pub fn cut(&self, from: usize, to: usize) {
        self.address_book(from, to, "02:00:00:00:00:01");
    }

    pub fn join(&self, from: usize, to: usize) {
        let right = &self.nodes[to].network.as_ref().expect("only networks are cut").hardware_address;
        self.address_book(from, to, right);
    }

    pub fn join_all(&self) {
        for (from, to) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            self.join(from, to);
        }
    }

    fn address_book(&self, from: usize, to: usize, hardware_address: &str) {
        let network = self.nodes[from].network.as_ref().expect("only networks are cut");
        let (to, end) = (self.nodes[to].address, &network.end);
        network.ip(&format!("neigh replace {to} lladdr {hardware_address} dev {end} nud permanent")).unwrap();
    }

    /// Has each node's network send datagrams to both others, to a port where nobody listens: as many as `tracers` says.
    pub fn send_tracers(&self) {
        for (from, node) in self.nodes.iter().enumerate() {
            let network = node.network.as_ref().expect("only networks are cut");
            for other in self.nodes.iter().filter(|other| other.name != node.name) {
                let send = format!("for _ in {{1..{}}}; do echo > /dev/udp/{}/9; done", tracers(from), other.address);
                run(network.enter().args(["bash", "-c", &send])).unwrap();
            }
        }
    }

    /// How many datagrams for nobody have come to each node's network so far, as its kernel counts them. Nodes send none.
    pub fn datagrams_for_nobody(&self) -> [u64; 3] {
        [0, 1, 2].map(|place| {
            let network = self.nodes[place].network.as_ref().expect("only networks are cut");
            let counts = std::fs::read_to_string(format!("/proc/{}/net/snmp", network.keeper.id())).unwrap();
            let mut lines = counts.lines().filter_map(|line| line.strip_prefix("Udp: "));
            let (names, counts) = (lines.next().unwrap(), lines.next().unwrap());
            let mut counts = names.split(' ').zip(counts.split(' '));
            counts.find(|(name, _)| *name == "NoPorts").unwrap().1.parse().unwrap()
        })
    }

    /// Drops what the node's disk has not written, and the node with it; then the disk is there again.
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

    /// By how many seconds a node's wall clock differs from ours, as the `Date` of an answer says.
    pub async fn wall_clock_error(&self, place: usize) -> Option<i64> {
        let url = format!("http://{}:7400/livez", self.nodes[place].address);
        let response = self.http.get(url).timeout(Duration::from_secs(1)).send().await.ok()?;
        let date = jiff::fmt::rfc2822::parse(response.headers().get("date")?.to_str().ok()?).ok()?;
        Some(date.timestamp().as_second() - jiff::Timestamp::now().as_second())
    }

    /// How often a node has said something.
    pub fn count_in_log(&self, place: usize, words: &str) -> usize {
        std::fs::read_to_string(&self.nodes[place].log).unwrap_or_default().matches(words).count()
    }

    pub fn proxies(&self) -> &Proxies {
        self.proxies.as_ref().expect("this scenario asks for proxies")
    }

    /// Waits until it has ended by itself, and says how.
    pub async fn end_of(&mut self, place: usize, limit: Moment) -> Result<Option<i32>, String> {
        let deadline = now() + limit;
        loop {
            if let Some(code) = self.ended(place) {
                return Ok(code);
            }
            if now() > deadline {
                return Err(format!("n{} has not ended within {} s", place + 1, limit / SECOND));
            }
            sleep(10_000).await;
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

    /// Waits until all nodes are ready, and says when they were.
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
            sleep(20_000).await;
        }
        None
    }

    /// Waits until a node says that it is the raft leader; of two that do, the one of the later raft term is.
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
            sleep(20_000).await;
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

    /// The last words of each node.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let log = std::fs::read_to_string(&node.log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            text += &format!("--- {} ---\n{}\n", node.name, lines[lines.len().saturating_sub(15)..].join("\n"));
        }
        text
    }

    /// Where secrets are in the logs, and in all that the nodes have stored. Ends the nodes first, so that no file goes
    /// while it is looked for.
    pub fn leaks(&mut self, search: &Search) -> Vec<String> {
        (0..3).for_each(|place| self.kill(place));
        let places = self.nodes.iter().flat_map(|node| [&node.log, &node.data_dir]);
        places.flat_map(|place| search.look_into(place)).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.nodes.clear();
        if is_apart() {
            let _ = ip("link del chaos0");
        }
    }
}
