//! What was typed: by flag, by environment variable, or in the file. Nothing here is checked.
//!
//! One list of settings serves all three, so they can't drift apart: the flag `--raft-heartbeat` is the
//! variable `QUORATE_RAFT_HEARTBEAT` and the key `raft_heartbeat`. Only `--log-level` has a short variable,
//! `QUORATE_LOG`.

use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use serde::{Deserialize, Deserializer};

use super::error::ConfigError;
use super::log_format::LogFormat;

/// The settings of a node as they were typed; what was not typed is `None`.
#[derive(Debug, Default, Clone, PartialEq, Eq, clap::Args, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Label of this node, unique in its cluster [default: the host name]
    #[arg(long, env = "QUORATE_NAME", value_name = "NAME")]
    pub name: Option<String>,

    /// Directory that this node alone writes to [default: ./quorate-data]
    #[arg(long, env = "QUORATE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Address for clients [default: 127.0.0.1:7400]
    #[arg(long, env = "QUORATE_LISTEN", value_name = "IP:PORT")]
    pub listen: Option<String>,

    /// Address for other nodes and for operators [default: 127.0.0.1:7401]
    #[arg(long, env = "QUORATE_PEER_LISTEN", value_name = "IP:PORT")]
    pub peer_listen: Option<String>,

    /// All nodes of a new cluster, this one included, each with its peer address
    #[arg(long, env = "QUORATE_PEERS", value_name = "NAME=HOST:PORT,…", value_delimiter = ',')]
    #[serde(default, deserialize_with = "text_or_list")]
    pub peers: Option<Vec<String>>,

    /// URL under which clients reach this node [default: from --listen]
    #[arg(long, env = "QUORATE_ADVERTISE_URL", value_name = "URL")]
    pub advertise_url: Option<String>,

    /// File with the secret that all nodes share: at least 16 bytes, mode 600
    #[arg(long, env = "QUORATE_CLUSTER_SECRET_FILE", value_name = "FILE")]
    pub cluster_secret_file: Option<PathBuf>,

    /// File with the tokens that clients must show, one a line, mode 600 [default: clients need none]
    #[arg(long, env = "QUORATE_ACCESS_TOKEN_FILE", value_name = "FILE")]
    pub access_token_file: Option<PathBuf>,

    /// Campaigns and room creations a minute that this node takes from one client [default: 600]
    #[arg(long, env = "QUORATE_CAMPAIGNS_PER_MINUTE", value_name = "N")]
    pub campaigns_per_minute: Option<u32>,

    /// Networks whose X-Forwarded-For and Forwarded headers are believed [default: none]
    #[arg(long, env = "QUORATE_TRUSTED_PROXIES", value_name = "CIDR,…", value_delimiter = ',')]
    #[serde(default, deserialize_with = "text_or_list")]
    pub trusted_proxies: Option<Vec<String>>,

    /// Leases that may live at a time, in the whole cluster; all are in every node's memory [default: 100000]
    #[arg(long, env = "QUORATE_MAX_LIVE_LEASES", value_name = "N")]
    pub max_live_leases: Option<u64>,

    /// Watch streams that this node serves at a time [default: 1024]
    #[arg(long, env = "QUORATE_MAX_WATCHES", value_name = "N")]
    pub max_watches: Option<usize>,

    /// Watch streams that one client may have open at this node [default: 8]
    #[arg(long, env = "QUORATE_MAX_WATCHES_PER_CLIENT", value_name = "N")]
    pub max_watches_per_client: Option<usize>,

    /// Switch elections off here: answer 403 to all that is asked about rooms, looks included
    #[arg(long, env = "QUORATE_NO_ELECTIONS", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub no_elections: Option<bool>,

    /// How often the raft leader tells the others that it is there [default: 100ms]
    #[arg(long, env = "QUORATE_RAFT_HEARTBEAT", value_name = "DURATION")]
    pub raft_heartbeat: Option<String>,

    /// How long a silent raft leader is believed; a silence of 1.5 to 2 times this starts a raft election [default: 500ms]
    #[arg(long, env = "QUORATE_RAFT_ELECTION_TIMEOUT", value_name = "DURATION")]
    pub raft_election_timeout: Option<String>,

    /// Raft log entries between two snapshots [default: 10000]
    #[arg(long, env = "QUORATE_SNAPSHOT_EVERY", value_name = "N")]
    pub snapshot_every: Option<u64>,

    /// Raft log entries kept behind a snapshot, for nodes that were away for a while [default: 20000]
    #[arg(long, env = "QUORATE_LOG_ENTRIES_KEPT", value_name = "N")]
    pub log_entries_kept: Option<u64>,

    /// What to report: a level, or levels by target as in "info,openraft=debug" [default: info]
    #[arg(long, env = "QUORATE_LOG", value_name = "LEVEL")]
    pub log_level: Option<String>,

    /// How to report it; auto is text on a terminal and JSON elsewhere [default: auto]
    #[arg(long, env = "QUORATE_LOG_FORMAT", value_name = "FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
}

impl RawConfig {
    /// Reads a TOML file.
    pub fn from_file(path: &Path) -> Result<RawConfig, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let fix = "name a file that this user can read, or leave the flag out";
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
            let fix = "write each key as its flag, with _ for - and without the leading --";
            ConfigError::new("--config", format!("line {line}: {}", error.message().replace('\n', " ")), fix)
        })
    }

    /// What is set here, and for the rest what is set in `lower`.
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

/// In the file a list may also be written as it is in a flag, with commas.
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

/// Variables that look like settings of ours and are none, each as a sentence for the operator.
pub fn unknown_variables(known: &[String], set: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut unknown: Vec<String> = set
        .into_iter()
        .filter(|name| name.starts_with("QUORATE_") && !known.contains(name) && !is_service_link(name))
        .map(|name| format!("{name} is set, but quorate knows no such variable; see `quorate serve --help`"))
        .collect();
    unknown.sort();
    unknown
}

/// Kubernetes sets such variables in every pod, for each Service there is; one named quorate is no mistake.
fn is_service_link(name: &str) -> bool {
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.split_once("_PORT_").is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
}
