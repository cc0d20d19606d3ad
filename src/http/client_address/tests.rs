use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The client as seen from `socket`, with 10.0.0.0/8 and fd00::/8 trusted.
fn seen(socket: &str, headers: &[(&str, &str)]) -> IpAddr {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    client_address(ip(socket), &map, &["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()])
}

#[test]
fn the_headers_of_a_stranger_are_ignored() {
    assert_eq!(seen("192.0.2.9", &[("x-forwarded-for", "198.51.100.1")]), ip("192.0.2.9"));
    assert_eq!(seen("192.0.2.9", &[("forwarded", "for=198.51.100.1")]), ip("192.0.2.9"));
}

#[test]
fn the_last_hop_that_is_not_a_trusted_proxy_is_the_client() {
    for (header, expected) in [
        ("198.51.100.1", "198.51.100.1"),
        ("1.1.1.1, 198.51.100.1", "198.51.100.1"),
        ("1.1.1.1, 198.51.100.1, 10.9.9.9", "198.51.100.1"),
        ("10.1.1.1, 10.9.9.9", "10.1.1.1"),
        ("198.51.100.1:4711", "198.51.100.1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("198.51.100.1, ::ffff:10.9.9.9", "198.51.100.1"),
        ("1.1.1.1, unknown", "10.0.0.1"),
        ("1.1.1.1, ", "10.0.0.1"),
    ] {
        assert_eq!(seen("10.0.0.1", &[("x-forwarded-for", header)]), ip(expected), "{header}");
        assert_eq!(seen("::ffff:10.0.0.1", &[("x-forwarded-for", header)]), ip(expected), "{header}");
    }
    assert_eq!(
        seen("10.0.0.1", &[("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "198.51.100.1")]),
        ip("198.51.100.1")
    );
}

#[test]
fn forwarded_is_read_like_x_forwarded_for() {
    for (header, expected) in [
        ("for=198.51.100.1;proto=https;by=10.0.0.1", "198.51.100.1"),
        ("for=1.1.1.1, For=\"[2001:db8::1]:4711\"", "2001:db8::1"),
        ("for=\"1.1.1.1, for=198.51.100.1", "198.51.100.1"),
        ("for=_hidden", "10.0.0.1"),
        ("proto=https", "10.0.0.1"),
    ] {
        assert_eq!(seen("10.0.0.1", &[("forwarded", header)]), ip(expected), "{header}");
    }
}

#[test]
fn two_headers_that_disagree_are_not_believed() {
    let spoofed = [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "198.51.100.1")];
    assert_eq!(seen("10.0.0.1", &spoofed), ip("10.0.0.1"));
    let alike = [("forwarded", "for=198.51.100.1"), ("x-forwarded-for", "198.51.100.1")];
    assert_eq!(seen("10.0.0.1", &alike), ip("198.51.100.1"));
}

proptest::proptest! {
    #[test]
    fn no_header_makes_the_reader_panic(value in "[ -~]{0,80}") {
        seen("10.0.0.1", &[("forwarded", &value)]);
        seen("10.0.0.1", &[("x-forwarded-for", &value)]);
    }
}
