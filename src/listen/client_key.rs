//! What clients are counted by.

use std::net::{IpAddr, Ipv6Addr};

/// What clients are counted by: an IPv4 address, or the /64 of an IPv6 address, which is the least that a
/// single customer gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientKey(IpAddr);

impl ClientKey {
    /// The key of an address. An IPv4 address in IPv6 clothes is the IPv4 address.
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
