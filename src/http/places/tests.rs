use std::net::Ipv4Addr;

use super::*;

fn client(number: u32) -> ClientKey {
    ClientKey::of(Ipv4Addr::from_bits(number).into())
}

#[test]
fn places_are_limited_for_each_client_and_in_all_and_become_free_when_dropped() {
    let places = Places::new(3, 2);
    let first = places.take(client(1)).ok();
    let _second = places.take(client(1)).ok().unwrap();
    assert_eq!(places.take(client(1)).err(), Some(Taken::Share), "two a client");
    let other = places.take(client(2)).ok();
    assert_eq!(places.take(client(3)).err(), Some(Taken::All), "three in all");
    drop((first, other));
    assert_eq!(places.take(client(1)).err(), None);
}

#[test]
fn one_client_can_take_half_of_the_places_and_a_single_place_can_be_taken() {
    for (in_flight_max, per_client_max) in [(0, 0), (1, 1), (4, 2), (10_000, 5_000)] {
        assert_eq!(Places::for_requests(in_flight_max).per_client_max, per_client_max);
    }
}
