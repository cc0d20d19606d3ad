//! How many files this process may have open, and who gets how many of them.
//!
//! A connection is an open file too. When none is left, the storage can't write, and a node that can't write has to
//! end. So what the storage and the other nodes need is set aside first; clients get the rest.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::NodeError;
use crate::config::Config;

/// Apart from the raft log and connections: 18 at rest, and what a snapshot, the lookup of a name and a connection
/// that is accepted only to be closed take for a moment.
const OWN: usize = 40;

/// Raft log entries to one open file, at the least: the largest, with 4 KiB of metadata, fill a file of 4 MiB so.
/// raft-log keeps all its files open.
const ENTRIES_PER_FILE: usize = 800;

/// Connections between two nodes, each way: 8 requests that forward, and raft messages beside them.
const PER_PEER: usize = 16;

/// What every node has for callers of its peer listener, so that even one without peers can be reached.
const PEER_LISTENER_MIN: usize = 32;

/// How the open files are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// Connections of the peer listener.
    pub peer_connections: usize,
    /// Connections of the client listener.
    pub client_connections: usize,
}

impl OpenFiles {
    /// Fewer are no service.
    const CLIENT_CONNECTIONS_MIN: usize = 16;

    /// Raises the limit as far as this process may, and shares it out.
    ///
    /// # Errors
    /// If it isn't enough for a node.
    pub fn claim(config: &Config, useful_max: usize) -> Result<OpenFiles, NodeError> {
        let limit = raise_limit();
        let shared = Self::share_out(limit, config, useful_max)?;
        let OpenFiles { client_connections, peer_connections } = shared;
        if client_connections <= config.max_watches {
            tracing::warn!(
                open_files_max = limit,
                client_connections,
                peer_connections,
                "the limit of open files is low: watch streams alone could take all connections; raise it with \
                 ulimit -n, or LimitNOFILE= of the unit"
            );
        } else {
            tracing::info!(open_files_max = limit, client_connections, peer_connections, "connections are limited");
        }
        Ok(shared)
    }

    fn share_out(limit: usize, config: &Config, useful_max: usize) -> Result<OpenFiles, NodeError> {
        let log_entries = config.raft.snapshot_every.saturating_add(config.raft.log_entries_kept);
        let log = usize::try_from(log_entries).unwrap_or(usize::MAX) / ENTRIES_PER_FILE;
        let to_peers = config.peers.len().saturating_sub(1) * PER_PEER;
        // Half of it is the share of one address, so that all peers may be behind the same one.
        let peer_connections = PEER_LISTENER_MIN.max(2 * config.peers.len() * PER_PEER);
        let set_aside = OWN.saturating_add(log).saturating_add(to_peers + peer_connections);
        let left = limit.saturating_sub(set_aside);
        if left < Self::CLIENT_CONNECTIONS_MIN {
            return Err(NodeError::Setup(format!(
                "this process may have {limit} files open, and needs {}; raise it with ulimit -n, or LimitNOFILE= of \
                 the unit",
                set_aside.saturating_add(Self::CLIENT_CONNECTIONS_MIN)
            )));
        }
        Ok(OpenFiles { peer_connections, client_connections: left.min(useful_max) })
    }
}

/// Raises what applies, the soft limit, to what may apply, the hard one. The soft one is low for the sake of programs
/// that use `select`; this one doesn't.
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
