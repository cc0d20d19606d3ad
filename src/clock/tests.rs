use super::*;

fn counter() -> Counter {
    Counter { total: Duration::ZERO, raw: Duration::ZERO, monotonic: Duration::ZERO }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn the_clock_takes_the_smaller_step_of_the_two() {
    let mut counter = counter();
    counter.advance(ms(100), ms(90));
    counter.advance(ms(150), ms(180));
    assert_eq!(counter.total, ms(90 + 50));
}

#[test]
fn a_long_stop_counts_as_one_short_step() {
    let mut counter = counter();
    counter.advance(ms(60_000), ms(60_000));
    assert_eq!(counter.total, SystemClock::STEP_MAX);
    counter.advance(ms(60_010), ms(60_010));
    assert_eq!(counter.total, SystemClock::STEP_MAX + ms(10));
}

#[test]
fn a_clock_that_goes_back_adds_nothing() {
    let mut counter = counter();
    counter.advance(ms(100), ms(100));
    counter.advance(ms(40), ms(150));
    counter.advance(ms(60), ms(170));
    assert_eq!(counter.total, ms(120));
}

#[test]
fn nothing_is_stamped_before_an_entry_of_the_own_raft_term_is_applied() {
    let mut clock = LeaseClock::default();
    assert_eq!(clock.stamp(2, ClockReading(5)), None);
    clock.after_apply(1, LogTime(10), ClockReading(5));
    assert_eq!(clock.stamp(2, ClockReading(6)), None);
    clock.after_apply(2, LogTime(10), ClockReading(7));
    assert_eq!(clock.stamp(2, ClockReading(7)).map(|s| s.log_time), Some(LogTime(10)));
    assert_eq!(clock.stamp(2, ClockReading(9)).map(|s| s.log_time), Some(LogTime(12)));
}

#[test]
fn a_new_reign_starts_from_the_log_and_not_from_the_old_reading() {
    let mut clock = LeaseClock::default();
    clock.after_apply(1, LogTime(0), ClockReading(0));
    clock.stamp(1, ClockReading(0));
    assert_eq!(clock.stamp(1, ClockReading(600_000)).map(|s| s.log_time), Some(LogTime(600_000)));
    clock.after_apply(2, LogTime(40), ClockReading(600_001));
    clock.after_apply(3, LogTime(50), ClockReading(600_002));
    assert_eq!(clock.stamp(3, ClockReading(600_002)).map(|s| s.log_time), Some(LogTime(50)));
}

#[test]
fn a_licence_behind_the_log_catches_up() {
    let mut clock = LeaseClock::default();
    clock.after_apply(1, LogTime(0), ClockReading(0));
    clock.stamp(1, ClockReading(0));
    clock.after_apply(1, LogTime(500), ClockReading(10));
    assert_eq!(clock.stamp(1, ClockReading(11)).map(|s| s.log_time), Some(LogTime(501)));
}
