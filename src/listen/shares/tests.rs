use std::net::Ipv4Addr;

use super::*;

#[test]
fn a_share_comes_back_when_it_is_dropped_and_leaves_nothing_behind() {
    let client = |number| ClientKey::of(Ipv4Addr::from_bits(number).into());
    let shares = Shares::new(2);
    let first = shares.take(client(1)).unwrap();
    let second = shares.take(client(1)).unwrap();
    assert!(shares.take(client(1)).is_none(), "two a client");
    let other = shares.take(client(2)).unwrap();
    drop(first);
    let third = shares.take(client(1)).unwrap();
    assert!(shares.take(client(1)).is_none(), "only one has come back");
    drop((second, third, other));
    assert!(shares.taken.lock().is_empty());
}
