//! How many files this process may have open, and how they are divided.
//!
//! A connection is an open file too. When none is left, the storage can't write, and a node that can't write has to
//! stop. So the storage and the other nodes get what they need first, and clients get the rest.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::NodeError;
use crate::config::Config;

/// Files of the process itself, without the raft log and connections: 18 at rest, and a few more at times. A snapshot,
/// a DNS lookup, and a connection over the limit, which is accepted and closed, each need some.
const OWN: usize = 40;

/// A file of the raft log has at least this many entries: 800 of the largest ones, each with 4 KiB of metadata, fill
/// its 4 MiB. raft-log keeps all its files open.
const ENTRIES_PER_FILE: usize = 800;

/// Connections from one node to another: 8 for forwarded operations, and the others for raft messages.
const PER_PEER: usize = 16;

/// How the open files are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// Connections of the peer listener.
    pub peer_connections: usize,
    /// Connections of the client listener.
    pub client_connections: usize,
}

impl OpenFiles {
    /// With fewer client connections than this, a node doesn't start.
    const CLIENT_CONNECTIONS_MIN: usize = 16;

    /// Raises the limit as far as this process may, and divides the files.
    ///
    /// # Errors
    /// If there are too few for a node.
    pub fn claim(config: &Config) -> Result<OpenFiles, NodeError> {
        let limit = raise_limit();
        let divided = Self::divide(limit, config)?;
        let OpenFiles { client_connections, peer_connections } = divided;
        if client_connections <= config.http.streams_max {
            tracing::warn!(
                open_files_max = limit,
                client_connections,
                peer_connections,
                "the limit of open files is low: watch streams alone could take all connections; raise the limit \
                 with ulimit -n, or with LimitNOFILE= in the systemd unit"
            );
        } else {
            tracing::info!(open_files_max = limit, client_connections, peer_connections, "connections are limited");
        }
        Ok(divided)
    }

    fn divide(limit: usize, config: &Config) -> Result<OpenFiles, NodeError> {
        let log_entries = config.consensus.snapshot_every.saturating_add(config.consensus.log_entries_kept);
        let log = usize::try_from(log_entries).unwrap_or(usize::MAX) / ENTRIES_PER_FILE;
        let to_peers = config.peers.len().saturating_sub(1) * PER_PEER;
        // One address may have half of the connections. Doubled, they are enough even if all peers share one address.
        let peer_connections = 2 * config.peers.len() * PER_PEER;
        let set_aside = OWN.saturating_add(log).saturating_add(to_peers + peer_connections);
        let left = limit.saturating_sub(set_aside);
        if left < Self::CLIENT_CONNECTIONS_MIN {
            return Err(NodeError::Setup(format!(
                "this process may have {limit} files open, and needs {}; raise the limit with ulimit -n, or with \
                 LimitNOFILE= in the systemd unit",
                set_aside.saturating_add(Self::CLIENT_CONNECTIONS_MIN)
            )));
        }
        Ok(OpenFiles { peer_connections, client_connections: left.min(config.http.connections_of_use()) })
    }
}

/// Raises the limit that applies, the soft limit, to the hard limit. The soft limit is low only for programs that use
/// `select`, and this program doesn't.
fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files can't be raised");
    }
    let limit = if raised.is_ok() { maximum } else { current };
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
