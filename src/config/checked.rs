//! Valid settings, made from what was typed.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use tracing_subscriber::EnvFilter;

use super::error::ConfigError;
use super::log_format::LogFormat;
use super::peers::{self, Peer};
use super::raw::RawConfig;
use super::{parse, secret_file};
use crate::consensus::ConsensusSettings;
use crate::http::HttpSettings;
use crate::service::ServiceSettings;

/// Valid settings of a node.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node's name, unique in its cluster.
    pub name: String,
    /// The directory with all files of this node. No other node uses it.
    pub data_dir: PathBuf,
    /// The address of the client listener.
    pub listen: SocketAddr,
    /// The address of the peer listener. A node without peers does not open it.
    pub peer_listen: SocketAddr,
    /// The nodes that found the cluster, this one included. If the list is empty, this node founds a cluster alone.
    pub peers: Vec<Peer>,
    /// The URL at which clients reach this node, if the operator set one. Use [`Config::client_url`].
    pub advertise_url: Option<String>,
    /// The secret that peers must prove to know. A node with peers has one.
    pub cluster_secret: Option<SecretString>,
    /// The limits and permissions of clients at this node.
    pub http: HttpSettings,
    /// How this node serves rooms.
    pub service: ServiceSettings,
    /// How the nodes agree.
    pub consensus: ConsensusSettings,
    /// Which trace events are written. `tracing_subscriber` has accepted these directives.
    pub log_level: String,
    /// How trace events are written.
    pub log_format: LogFormat,
}

/// A faster heartbeat only costs processor time.
const HEARTBEAT_MIN: Duration = Duration::from_millis(10);

/// With slower timing, a lost raft leader would be replaced only after minutes.
const RAFT_TIMING_MAX: Duration = Duration::from_secs(60);

/// The raft election timeout is at least this many heartbeats. With fewer, one lost packet could start a raft election.
const HEARTBEATS_PER_TIMEOUT_MIN: u32 = 3;

/// openraft (issue 2116) panics if it deletes raft log entries that still wait to be applied.
const LOG_ENTRIES_KEPT_MIN: u64 = 1000;

impl Config {
    /// Combines what was typed with the settings file, if there is one, and checks the result.
    pub fn load(typed: RawConfig, file: Option<&Path>) -> Result<Config, ConfigError> {
        match file {
            Some(path) => Config::new(typed.or(RawConfig::from_file(path)?)),
            None => Config::new(typed),
        }
    }

    /// Checks every value, and then the values against each other.
    pub fn new(raw: RawConfig) -> Result<Config, ConfigError> {
        let name = match &raw.name {
            Some(name) => name.clone(),
            None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        };
        let config = Config {
            name: parse::name("--name", &name)?,
            data_dir: raw.data_dir.clone().unwrap_or_else(|| "./quorate-data".into()),
            listen: parse::listen("--listen", raw.listen.as_deref().unwrap_or("127.0.0.1:7400"))?,
            peer_listen: parse::listen("--peer-listen", raw.peer_listen.as_deref().unwrap_or("127.0.0.1:7401"))?,
            peers: peers::parse(raw.peers.as_deref().unwrap_or_default())?,
            advertise_url: raw.advertise_url.as_deref().map(|url| parse::url("--advertise-url", url)).transpose()?,
            cluster_secret: raw.cluster_secret_file.as_deref().map(secret_file::cluster_secret).transpose()?,
            http: http_settings(&raw)?,
            service: service_settings(&raw)?,
            consensus: consensus_settings(&raw)?,
            log_level: raw.log_level.unwrap_or_else(|| "info".into()),
            log_format: raw.log_format.unwrap_or(LogFormat::Auto),
        };
        config.check_values()?;
        config.check_peers()?;
        config.check_secret()?;
        Ok(config)
    }

    /// The URL at which clients reach this node, whose client listener is bound to `bound`.
    ///
    /// A listener on all addresses has no address of its own. The URL then has the host at which peers reach this node,
    /// or else this node's name.
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

    /// The address at which peers reach this node, whose peer listener is bound to `bound`.
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
            let fix = "name a directory, such as ./quorate-data";
            return Err(ConfigError::new("--data-dir", "the path is empty", fix));
        }
        let (client, peer) = (self.listen, self.peer_listen);
        let overlap = client.ip() == peer.ip() || client.ip().is_unspecified() || peer.ip().is_unspecified();
        if client.port() == peer.port() && client.port() != 0 && overlap {
            let problem = format!("{peer} is already used by --listen {client}");
            return Err(ConfigError::new("--peer-listen", problem, "choose another port"));
        }
        let (one_client, all) = (self.http.streams_per_client_max, self.http.streams_max);
        if one_client > all {
            let problem = format!("{one_client} is more than --max-watches {all}");
            return Err(ConfigError::new("--max-watches-per-client", problem, "lower it, or raise --max-watches"));
        }
        if EnvFilter::try_new(&self.log_level).is_err() {
            let problem = format!("{:?} is not a log level", self.log_level);
            let fix = "write error, warn, info, debug or trace, or a level per target such as info,openraft=debug";
            return Err(ConfigError::new("--log-level", problem, fix));
        }
        Ok(())
    }

    fn check_peers(&self) -> Result<(), ConfigError> {
        if !self.peers.is_empty() && self.own_peer().is_none() {
            let problem = format!("this node, {:?}, is not in the list", self.name);
            let fix = format!("add {}=host:port, or set --name to one of the names in the list", self.name);
            return Err(ConfigError::new("--peers", problem, fix));
        }
        Ok(())
    }

    /// Without a cluster secret, every process that reaches the peer listener could change every lease. So a secret is
    /// required on loopback too.
    fn check_secret(&self) -> Result<(), ConfigError> {
        if self.peers.is_empty() || self.cluster_secret.is_some() {
            return Ok(());
        }
        let fix = "set --cluster-secret-file to a file with the secret that all nodes share";
        Err(ConfigError::new("--peers", "there is no cluster secret", fix))
    }
}

fn http_settings(raw: &RawConfig) -> Result<HttpSettings, ConfigError> {
    let defaults = HttpSettings::default();
    Ok(HttpSettings {
        elections_enabled: raw.no_elections.map_or(defaults.elections_enabled, |off| !off),
        access_tokens: match &raw.access_token_file {
            Some(path) => secret_file::access_tokens(path)?,
            None => defaults.access_tokens,
        },
        campaigns_per_minute: match raw.campaigns_per_minute {
            Some(campaigns) => NonZeroU32::new(campaigns).ok_or_else(|| {
                let fix = "write 1 or more, or turn elections off with --no-elections";
                ConfigError::new("--campaigns-per-minute", "0 would reject every campaign", fix)
            })?,
            None => defaults.campaigns_per_minute,
        },
        trusted_proxies: match &raw.trusted_proxies {
            Some(networks) => parse::networks("--trusted-proxies", networks)?,
            None => defaults.trusted_proxies,
        },
        streams_max: raw.max_watches.unwrap_or(defaults.streams_max),
        streams_per_client_max: raw.max_watches_per_client.unwrap_or(defaults.streams_per_client_max),
        ..defaults
    })
}

fn service_settings(raw: &RawConfig) -> Result<ServiceSettings, ConfigError> {
    let defaults = ServiceSettings::default();
    let live_leases = raw.max_live_leases.unwrap_or(defaults.live_leases_max);
    Ok(ServiceSettings { live_leases_max: parse::at_least("--max-live-leases", live_leases, 1)?, ..defaults })
}

fn consensus_settings(raw: &RawConfig) -> Result<ConsensusSettings, ConfigError> {
    let defaults = ConsensusSettings::default();
    let timing = |flag, typed: &Option<String>, default| match typed {
        Some(text) => parse::duration(flag, text, HEARTBEAT_MIN..=RAFT_TIMING_MAX),
        None => Ok(default),
    };
    let heartbeat = timing("--raft-heartbeat", &raw.raft_heartbeat, defaults.heartbeat)?;
    let raft_election_timeout =
        timing("--raft-election-timeout", &raw.raft_election_timeout, defaults.raft_election_timeout)?;
    if raft_election_timeout < heartbeat * HEARTBEATS_PER_TIMEOUT_MIN {
        let problem = format!(
            "{} is less than {HEARTBEATS_PER_TIMEOUT_MIN} times --raft-heartbeat {}",
            humantime::format_duration(raft_election_timeout),
            humantime::format_duration(heartbeat)
        );
        return Err(ConfigError::new("--raft-election-timeout", problem, "raise it, or lower --raft-heartbeat"));
    }
    let snapshot_every = raw.snapshot_every.unwrap_or(defaults.snapshot_every);
    let log_entries_kept = raw.log_entries_kept.unwrap_or(defaults.log_entries_kept);
    Ok(ConsensusSettings {
        heartbeat,
        raft_election_timeout,
        snapshot_every: parse::at_least("--snapshot-every", snapshot_every, 1)?,
        log_entries_kept: parse::at_least("--log-entries-kept", log_entries_kept, LOG_ENTRIES_KEPT_MIN)?,
    })
}
