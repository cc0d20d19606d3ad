use std::net::Ipv4Addr;

use governor::clock::FakeRelativeClock;

use super::*;

fn client(number: u32) -> ClientKey {
    ClientKey::of(Ipv4Addr::from_bits(number).into())
}

fn admission(per_minute: u32, tracked_clients_max: usize) -> (Admission<FakeRelativeClock>, FakeRelativeClock) {
    let clock = FakeRelativeClock::default();
    (Admission::with_clock(NonZeroU32::new(per_minute).unwrap(), tracked_clients_max, clock.clone()), clock)
}

fn retry_after(result: Result<(), HttpError>) -> Duration {
    match result {
        Err(HttpError::OverLimit { retry_after, .. }) => retry_after,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_can_use_its_budget_at_once_and_then_at_its_rate() {
    let (admission, clock) = admission(600, 100);
    for _ in 0..600 {
        admission.check(client(1)).unwrap();
    }
    assert_eq!(retry_after(admission.check(client(1))), Duration::from_millis(100));
    admission.check(client(2)).unwrap();
    clock.advance(Duration::from_millis(100));
    admission.check(client(1)).unwrap();
    retry_after(admission.check(client(1)));
}

#[test]
fn clients_that_do_not_fit_in_the_table_share_one_budget() {
    let (admission, _clock) = admission(10, 3);
    for number in 0..3 {
        admission.check(client(number)).unwrap();
    }
    for number in 100..110 {
        admission.check(client(number)).unwrap();
    }
    retry_after(admission.check(client(999)));
    admission.check(client(0)).unwrap();
}

#[test]
fn a_million_clients_take_no_more_memory_than_the_table_has() {
    let (admission, _clock) = admission(600, 1_000);
    for number in 0..1_000_000 {
        let _ = admission.check(client(number));
    }
    assert_eq!(admission.limiter.len(), 1_000);
}

#[test]
fn clients_with_a_full_bucket_leave_the_table() {
    let (admission, clock) = admission(600, 1_000);
    for number in 0..1_000 {
        admission.check(client(number)).unwrap();
    }
    clock.advance(Duration::from_secs(2));
    admission.check(client(5_000)).unwrap();
    assert_eq!(admission.limiter.len(), 1);
}
