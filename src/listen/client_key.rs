//! The key by which clients are counted.

use std::net::{IpAddr, Ipv6Addr};

/// An IPv4 address, or the /64 network of an IPv6 address: providers give each customer at least a /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientKey(IpAddr);

impl ClientKey {
    /// The key of an address. An IPv4 address that is mapped to IPv6 counts as IPv4.
    pub fn of(address: IpAddr) -> Self {
        const NETWORK: u128 = !(u64::MAX as u128);
        match address.to_canonical() {
            v4 @ IpAddr::V4(_) => Self(v4),
            IpAddr::V6(v6) => Self(Ipv6Addr::from_bits(v6.to_bits() & NETWORK).into()),
        }
    }
}

#[cfg(test)]
mod tests;
