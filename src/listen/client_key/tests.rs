use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn ipv6_is_counted_by_its_64_network_and_mapped_ipv4_by_its_ipv4_address() {
    assert_eq!(ClientKey::of(ip("2001:db8:1:2::3")), ClientKey::of(ip("2001:db8:1:2:ffff::")));
    assert_ne!(ClientKey::of(ip("2001:db8:1:2::3")), ClientKey::of(ip("2001:db8:1:3::3")));
    assert_eq!(ClientKey::of(ip("::ffff:192.0.2.7")), ClientKey::of(ip("192.0.2.7")));
}
