//! The list of the nodes that found a cluster.

use super::error::ConfigError;
use super::parse::name;

/// One node of a new cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// `host:port` of its peer listener. The host may be a DNS name.
    pub address: String,
}

/// Parses `name=host:port` for each node. A DNS name is not resolved here: its address may change, so each new
/// connection looks it up.
pub fn parse(entries: &[String]) -> Result<Vec<Peer>, ConfigError> {
    const FLAG: &str = "--peers";
    let mut peers: Vec<Peer> = Vec::with_capacity(entries.len());
    for entry in entries {
        let peer = entry.trim().split_once('=').filter(|(_, address)| split_address(address).is_some());
        let Some((peer_name, address)) = peer else {
            let fix = "write name=host:port for each node, separated by commas";
            return Err(ConfigError::new(FLAG, format!("{entry:?} is not a name with an address"), fix));
        };
        let peer = Peer { name: name(FLAG, peer_name)?, address: address.to_owned() };
        if peers.iter().any(|other| other.name == peer.name) {
            let problem = format!("the name {} appears twice", peer.name);
            return Err(ConfigError::new(FLAG, problem, "give each node its own name"));
        }
        if peers.iter().any(|other| other.address == peer.address) {
            let problem = format!("the address {} appears twice", peer.address);
            return Err(ConfigError::new(FLAG, problem, "give each node its own peer address"));
        }
        peers.push(peer);
    }
    Ok(peers)
}

/// Host and port of `host:port`. An IPv6 host is in brackets.
pub fn split_address(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let valid = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(ip) => ip.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)),
    };
    valid.then_some((host, port))
}
