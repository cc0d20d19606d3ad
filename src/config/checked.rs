//! What is valid.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use secrecy::SecretString;
use tracing_subscriber::EnvFilter;

use super::error::ConfigError;
use super::log_format::LogFormat;
use super::peers::{self, Peer};
use super::raw::RawConfig;
use super::{parse, secret_file};

/// Valid settings of a node.
#[derive(Debug, Clone)]
pub struct Config {
    /// This node's label.
    pub name: String,
    /// The directory that this node alone writes to.
    pub data_dir: PathBuf,
    /// Where clients call.
    pub listen: SocketAddr,
    /// Where nodes and operators call.
    pub peer_listen: SocketAddr,
    /// The nodes of a new cluster, this one included. Empty: a cluster of this node alone.
    pub peers: Vec<Peer>,
    /// Where clients reach this node, if that was typed. Use [`Config::client_url`].
    pub advertise_url: Option<String>,
    /// What peers and operators must prove to know. `None` only if all peers are on this machine.
    pub cluster_secret: Option<SecretString>,
    /// What clients must show one of. Empty: they need none.
    pub access_tokens: Vec<SecretString>,
    /// Campaigns and room creations a minute from one client.
    pub campaigns_per_minute: NonZeroU32,
    /// Whose word on a client's address is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Leases that may live at a time. Each is in the memory of every node, with up to 4 KiB of metadata, so this is what
    /// keeps strangers from filling it.
    pub max_live_leases: u64,
    /// Watch streams at a time.
    pub max_watches: usize,
    /// Watch streams at a time for one client.
    pub max_watches_per_client: usize,
    /// Whether rooms can be campaigned for at all.
    pub elections_enabled: bool,
    /// How the nodes agree.
    pub raft: RaftTuning,
    /// Directives for the trace filter; `tracing_subscriber` has accepted them.
    pub log_level: String,
    /// How trace events are written.
    pub log_format: LogFormat,
}

/// How the nodes agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaftTuning {
    /// How often the raft leader shows that it is there.
    pub heartbeat: Duration,
    /// How long a raft leader that has lost touch may be believed. A silence of 1.5 to 2 times this starts a raft
    /// election; chance decides in between, so that two nodes seldom stand at once.
    pub raft_election_timeout: Duration,
    /// Raft log entries between two snapshots.
    pub snapshot_every: u64,
    /// Raft log entries kept behind a snapshot.
    pub log_entries_kept: u64,
}

/// A slower heartbeat than this would make every handover slow; a faster one only heats the machine.
const HEARTBEAT_MIN: Duration = Duration::from_millis(10);
const RAFT_TIMING_MAX: Duration = Duration::from_secs(60);

/// A vote starts when this many heartbeats in a row are missed; with fewer, one lost packet would do it.
const HEARTBEATS_PER_RAFT_ELECTION: u32 = 3;

/// openraft (issue 2116) panics if the raft log is cut off where entries still wait to be applied.
const LOG_ENTRIES_KEPT_MIN: u64 = 1000;

impl Config {
    /// Takes what flags and environment say, and what the file says where they say nothing.
    pub fn load(typed: RawConfig, file: Option<&Path>) -> Result<Config, ConfigError> {
        match file {
            Some(path) => Config::new(typed.or(RawConfig::from_file(path)?)),
            None => Config::new(typed),
        }
    }

    /// Checks every value, and then the values against each other.
    pub fn new(raw: RawConfig) -> Result<Config, ConfigError> {
        let name = match raw.name {
            Some(name) => name,
            None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        };
        let campaigns = raw.campaigns_per_minute.unwrap_or(600);
        let config = Config {
            name: parse::name("--name", &name)?,
            data_dir: raw.data_dir.unwrap_or_else(|| "./quorate-data".into()),
            listen: parse::listen("--listen", raw.listen.as_deref().unwrap_or("127.0.0.1:7400"))?,
            peer_listen: parse::listen("--peer-listen", raw.peer_listen.as_deref().unwrap_or("127.0.0.1:7401"))?,
            peers: peers::parse(&raw.peers.unwrap_or_default())?,
            advertise_url: raw.advertise_url.map(|url| parse::url("--advertise-url", &url)).transpose()?,
            cluster_secret: raw.cluster_secret_file.map(|path| secret_file::cluster_secret(&path)).transpose()?,
            access_tokens: match raw.access_token_file {
                Some(path) => secret_file::access_tokens(&path)?,
                None => Vec::new(),
            },
            campaigns_per_minute: NonZeroU32::new(campaigns).ok_or_else(|| {
                let fix = "write 1 or more, or switch rooms off with --no-elections";
                ConfigError::new("--campaigns-per-minute", "0 lets nobody in", fix)
            })?,
            trusted_proxies: parse::networks("--trusted-proxies", &raw.trusted_proxies.unwrap_or_default())?,
            max_live_leases: parse::at_least("--max-live-leases", raw.max_live_leases.unwrap_or(100_000), 1)?,
            max_watches: raw.max_watches.unwrap_or(1024),
            max_watches_per_client: raw.max_watches_per_client.unwrap_or(8),
            elections_enabled: !raw.no_elections.unwrap_or(false),
            raft: RaftTuning::new(
                raw.raft_heartbeat.as_deref().unwrap_or("100ms"),
                raw.raft_election_timeout.as_deref().unwrap_or("500ms"),
                raw.snapshot_every.unwrap_or(10_000),
                raw.log_entries_kept.unwrap_or(20_000),
            )?,
            log_level: raw.log_level.unwrap_or_else(|| "info".into()),
            log_format: raw.log_format.unwrap_or(LogFormat::Auto),
        };
        config.check_values()?;
        config.check_peers()?;
        config.check_exposure()?;
        Ok(config)
    }

    /// Where clients reach this node, whose client listener is bound to `bound`.
    ///
    /// If it listens on every address, the best guess is the host by which its peers know it.
    pub fn client_url(&self, bound: SocketAddr) -> String {
        if let Some(url) = &self.advertise_url {
            return url.clone();
        }
        if !bound.ip().is_unspecified() {
            return format!("http://{bound}");
        }
        let peer_host = self.own_peer().and_then(|peer| peers::split_address(&peer.address)).map(|(host, _)| host);
        format!("http://{}:{}", peer_host.unwrap_or(&self.name), bound.port())
    }

    /// Where peers reach this node, whose peer listener is bound to `bound`.
    pub fn peer_address(&self, bound: SocketAddr) -> String {
        match self.own_peer() {
            Some(peer) => peer.address.clone(),
            None if bound.ip().is_unspecified() => format!("{}:{}", self.name, bound.port()),
            None => bound.to_string(),
        }
    }

    fn own_peer(&self) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.name == self.name)
    }

    fn check_values(&self) -> Result<(), ConfigError> {
        if self.data_dir.as_os_str().is_empty() {
            return Err(ConfigError::new("--data-dir", "it is empty", "name a directory, as ./quorate-data"));
        }
        let (client, peer) = (self.listen, self.peer_listen);
        let overlap = client.ip() == peer.ip() || client.ip().is_unspecified() || peer.ip().is_unspecified();
        if client.port() == peer.port() && client.port() != 0 && overlap {
            let problem = format!("{peer} is taken by --listen {client}");
            return Err(ConfigError::new("--peer-listen", problem, "give it another port"));
        }
        if self.max_watches_per_client > self.max_watches {
            let problem = format!("{} is more than --max-watches {}", self.max_watches_per_client, self.max_watches);
            return Err(ConfigError::new("--max-watches-per-client", problem, "lower it, or raise --max-watches"));
        }
        if EnvFilter::try_new(&self.log_level).is_err() {
            let problem = format!("{:?} is no level", self.log_level);
            let fix = "write error, warn, info, debug or trace, or levels by target as in info,openraft=debug";
            return Err(ConfigError::new("--log-level", problem, fix));
        }
        Ok(())
    }

    fn check_peers(&self) -> Result<(), ConfigError> {
        if !self.peers.is_empty() && self.own_peer().is_none() {
            let problem = format!("this node, {:?}, is not among them", self.name);
            let fix = format!("add {}=host:port, or set --name to one of the names in the list", self.name);
            return Err(ConfigError::new("--peers", problem, fix));
        }
        Ok(())
    }

    /// Whoever reaches the peer listener of a cluster without a secret can rewrite every lease.
    fn check_exposure(&self) -> Result<(), ConfigError> {
        if self.cluster_secret.is_some() {
            return Ok(());
        }
        if !self.peer_listen.ip().to_canonical().is_loopback() {
            let problem = format!("other machines can reach {}, and there is no cluster secret", self.peer_listen);
            let fix = "set --cluster-secret-file to a file that all nodes have, or listen on 127.0.0.1";
            return Err(ConfigError::new("--peer-listen", problem, fix));
        }
        if let Some(peer) = self.peers.iter().find(|peer| !peers::is_loopback(&peer.address)) {
            let problem = format!("{} is on another machine, and there is no cluster secret", peer.address);
            let fix = "set --cluster-secret-file to a file that all nodes have";
            return Err(ConfigError::new("--peers", problem, fix));
        }
        Ok(())
    }
}

impl RaftTuning {
    fn new(heartbeat: &str, timeout: &str, snapshot_every: u64, kept: u64) -> Result<RaftTuning, ConfigError> {
        let range = HEARTBEAT_MIN..=RAFT_TIMING_MAX;
        let heartbeat = parse::duration("--raft-heartbeat", heartbeat, range.clone())?;
        let raft_election_timeout = parse::duration("--raft-election-timeout", timeout, range)?;
        if raft_election_timeout < heartbeat * HEARTBEATS_PER_RAFT_ELECTION {
            let times = HEARTBEATS_PER_RAFT_ELECTION;
            let problem = format!(
                "{} is less than {times} times --raft-heartbeat {}",
                humantime::format_duration(raft_election_timeout),
                humantime::format_duration(heartbeat)
            );
            return Err(ConfigError::new("--raft-election-timeout", problem, "raise it, or lower --raft-heartbeat"));
        }
        Ok(RaftTuning {
            heartbeat,
            raft_election_timeout,
            snapshot_every: parse::at_least("--snapshot-every", snapshot_every, 1)?,
            log_entries_kept: parse::at_least("--log-entries-kept", kept, LOG_ENTRIES_KEPT_MIN)?,
        })
    }
}
