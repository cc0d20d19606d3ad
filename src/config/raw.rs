//! The settings as they were typed: as flags, as environment variables, or in the settings file. They are not checked
//! here.
//!
//! One struct serves all three, so they always have the same settings. The flag `--raft-heartbeat` is the variable
//! `QUORATE_RAFT_HEARTBEAT` and the key `raft_heartbeat`. Only `--log-level` has a shorter variable, `QUORATE_LOG`.
//!
//! The help texts name the defaults. A test compares them, and the table in README.md, with the defaults that apply.

use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use serde::{Deserialize, Deserializer};

use super::error::ConfigError;
use super::log_format::LogFormat;

/// The settings of a node as they were typed. A setting that was not typed is `None`.
#[derive(Debug, Default, Clone, PartialEq, Eq, clap::Args, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Name of this node, unique in its cluster [default: the host name]
    #[arg(long, env = "QUORATE_NAME", value_name = "NAME")]
    pub name: Option<String>,

    /// Directory for all files of this node; no other node may use it [default: ./quorate-data]
    #[arg(long, env = "QUORATE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// IP address and port for clients [default: 127.0.0.1:7400]
    #[arg(long, env = "QUORATE_LISTEN", value_name = "IP:PORT")]
    pub listen: Option<String>,

    /// IP address and port for the other nodes; not opened without --peers [default: 127.0.0.1:7401]
    #[arg(long, env = "QUORATE_PEER_LISTEN", value_name = "IP:PORT")]
    pub peer_listen: Option<String>,

    /// Names and peer addresses of all nodes that found the cluster, this node included; not used after that
    /// [default: this node alone]
    #[arg(long, env = "QUORATE_PEERS", value_name = "NAME=HOST:PORT,…", value_delimiter = ',')]
    #[serde(default, deserialize_with = "text_or_list")]
    pub peers: Option<Vec<String>>,

    /// URL at which clients reach this node; shown in the status of every node [default: from --listen]
    #[arg(long, env = "QUORATE_ADVERTISE_URL", value_name = "URL")]
    pub advertise_url: Option<String>,

    /// File with the secret that all nodes share, needed with --peers: at least 16 bytes, and mode 600 [default: none]
    #[arg(long, env = "QUORATE_CLUSTER_SECRET_FILE", value_name = "FILE")]
    pub cluster_secret_file: Option<PathBuf>,

    /// File with access tokens, one per line, at least 16 characters each, and mode 600; a client must send one of
    /// them, as "Authorization: Bearer TOKEN" [default: none]
    #[arg(long, env = "QUORATE_ACCESS_TOKEN_FILE", value_name = "FILE")]
    pub access_token_file: Option<PathBuf>,

    /// Campaigns and new rooms that one client may request from this node per minute; renewals are not limited
    /// [default: 600]
    #[arg(long, env = "QUORATE_CAMPAIGNS_PER_MINUTE", value_name = "N")]
    pub campaigns_per_minute: Option<u32>,

    /// Networks of your proxies; only their X-Forwarded-For and Forwarded headers are trusted [default: none]
    #[arg(long, env = "QUORATE_TRUSTED_PROXIES", value_name = "CIDR,…", value_delimiter = ',')]
    #[serde(default, deserialize_with = "text_or_list")]
    pub trusted_proxies: Option<Vec<String>>,

    /// Leases that the whole cluster may have at a time; every node keeps all of them in memory [default: 100000]
    #[arg(long, env = "QUORATE_MAX_LIVE_LEASES", value_name = "N")]
    pub max_live_leases: Option<u64>,

    /// Watch streams that this node serves at a time [default: 1024]
    #[arg(long, env = "QUORATE_MAX_WATCHES", value_name = "N")]
    pub max_watches: Option<usize>,

    /// Watch streams that one client may have open at this node [default: 8]
    #[arg(long, env = "QUORATE_MAX_WATCHES_PER_CLIENT", value_name = "N")]
    pub max_watches_per_client: Option<usize>,

    /// Turn elections off at this node: it answers every request about a room, reads included, with 403 [default: off]
    #[arg(long, env = "QUORATE_NO_ELECTIONS", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub no_elections: Option<bool>,

    /// How often the raft leader sends a heartbeat; must be longer than a round trip between two nodes [default: 100ms]
    #[arg(long, env = "QUORATE_RAFT_HEARTBEAT", value_name = "DURATION")]
    pub raft_heartbeat: Option<String>,

    /// If the raft leader is silent for 1.5 to 2 times this long, the other nodes elect a new one; at least 3 times
    /// --raft-heartbeat [default: 500ms]
    #[arg(long, env = "QUORATE_RAFT_ELECTION_TIMEOUT", value_name = "DURATION")]
    pub raft_election_timeout: Option<String>,

    /// Number of raft log entries between two snapshots [default: 10000]
    #[arg(long, env = "QUORATE_SNAPSHOT_EVERY", value_name = "N")]
    pub snapshot_every: Option<u64>,

    /// Number of raft log entries kept behind a snapshot, so that a node that was away rarely needs the snapshot; at
    /// least 1000 [default: 20000]
    #[arg(long, env = "QUORATE_LOG_ENTRIES_KEPT", value_name = "N")]
    pub log_entries_kept: Option<u64>,

    /// What to log: error, warn, info, debug, trace, or a level per target such as "info,openraft=debug"
    /// [default: info]
    #[arg(long, env = "QUORATE_LOG", value_name = "LEVEL")]
    pub log_level: Option<String>,

    /// How to log: auto writes text on a terminal and JSON elsewhere [default: auto]
    #[arg(long, env = "QUORATE_LOG_FORMAT", value_name = "FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
}

impl RawConfig {
    /// Reads a TOML file.
    pub fn from_file(path: &Path) -> Result<RawConfig, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let fix = "name a file that this user can read, or leave out --config";
            ConfigError::new("--config", format!("{} can't be read ({error})", path.display()), fix)
        })?;
        Self::from_toml(&text)
            .map_err(|error| ConfigError { problem: format!("{}, {}", path.display(), error.problem), ..error })
    }

    /// Reads the text of a TOML file.
    pub fn from_toml(text: &str) -> Result<RawConfig, ConfigError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or(""));
            let line = before.matches('\n').count() + 1;
            let fix = "a key is the name of a flag without --, and with _ instead of -";
            ConfigError::new("--config", format!("line {line}: {}", error.message().replace('\n', " ")), fix)
        })
    }

    /// The settings that are set here, and the others from `lower`.
    pub fn or(self, lower: RawConfig) -> RawConfig {
        RawConfig {
            name: self.name.or(lower.name),
            data_dir: self.data_dir.or(lower.data_dir),
            listen: self.listen.or(lower.listen),
            peer_listen: self.peer_listen.or(lower.peer_listen),
            peers: self.peers.or(lower.peers),
            advertise_url: self.advertise_url.or(lower.advertise_url),
            cluster_secret_file: self.cluster_secret_file.or(lower.cluster_secret_file),
            access_token_file: self.access_token_file.or(lower.access_token_file),
            campaigns_per_minute: self.campaigns_per_minute.or(lower.campaigns_per_minute),
            trusted_proxies: self.trusted_proxies.or(lower.trusted_proxies),
            max_live_leases: self.max_live_leases.or(lower.max_live_leases),
            max_watches: self.max_watches.or(lower.max_watches),
            max_watches_per_client: self.max_watches_per_client.or(lower.max_watches_per_client),
            no_elections: self.no_elections.or(lower.no_elections),
            raft_heartbeat: self.raft_heartbeat.or(lower.raft_heartbeat),
            raft_election_timeout: self.raft_election_timeout.or(lower.raft_election_timeout),
            snapshot_every: self.snapshot_every.or(lower.snapshot_every),
            log_entries_kept: self.log_entries_kept.or(lower.log_entries_kept),
            log_level: self.log_level.or(lower.log_level),
            log_format: self.log_format.or(lower.log_format),
        }
    }
}

/// A list in the file may also be one string with commas, as in a flag.
fn text_or_list<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a list of strings, or one string with commas")]
    enum TextOrList {
        Text(String),
        List(Vec<String>),
    }
    Ok(Some(match TextOrList::deserialize(input)? {
        TextOrList::Text(text) => text.split(',').map(str::to_owned).collect(),
        TextOrList::List(list) => list,
    }))
}

/// The variables that start with `QUORATE_` and are not known, each in a sentence for the operator.
pub fn unknown_variables(known: &[String], set: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut unknown: Vec<String> = set
        .into_iter()
        .filter(|name| name.starts_with("QUORATE_") && !known.contains(name) && !is_service_link(name))
        .map(|name| format!("{name} is set, but quorate has no such setting; see `quorate serve --help`"))
        .collect();
    unknown.sort();
    unknown
}

/// Kubernetes sets such variables in every pod, for each Service. A Service named quorate is not a mistake.
fn is_service_link(name: &str) -> bool {
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.split_once("_PORT_").is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
}
