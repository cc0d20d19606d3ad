use super::*;

fn at(boot: u64, raw: u64, wall: u64) -> HolderInstant {
    let [boot, raw, wall] = [boot, raw, wall].map(Duration::from_secs);
    HolderInstant { boot, raw, wall }
}

#[test]
fn the_clock_that_shows_the_longest_time_counts() {
    let start = at(100, 50, 1_000_000);
    assert_eq!(at(107, 52, 1_000_003).since(start), Duration::from_secs(7), "the machine slept");
    assert_eq!(at(101, 59, 1_000_003).since(start), Duration::from_secs(9), "NTP slows the other clocks");
    assert_eq!(at(101, 52, 1_000_030).since(start), Duration::from_secs(30), "only the wall clock saw a pause");
}

#[test]
fn a_clock_that_goes_back_does_not_extend_a_deadline() {
    let start = at(100, 50, 1_000_000);
    assert_eq!(at(104, 53, 10).since(start), Duration::from_secs(4));
    assert_eq!(at(90, 40, 10).since(start), Duration::ZERO);
    let deadline = Deadline::new(start, Duration::from_secs(5));
    assert_eq!(deadline.remaining(at(104, 53, 10)), Duration::from_secs(1));
    assert!(deadline.is_over(at(105, 53, 10)));
    assert!(!deadline.is_over(at(104, 53, 10)));
}

#[test]
fn a_late_answer_to_an_early_request_does_not_shorten_a_lease() {
    let (early, late) = (at(100, 100, 100), at(110, 110, 110));
    let long = Deadline::new(late, Duration::from_secs(30));
    let short = Deadline::new(early, Duration::from_secs(30));
    let now = at(111, 111, 111);
    assert_eq!(long.later(short, now).remaining(now), Duration::from_secs(29));
    assert_eq!(short.later(long, now).remaining(now), Duration::from_secs(29));
    assert_eq!(long.scaled(|whole| whole / 3).remaining(now), Duration::from_secs(9));
}

#[test]
fn the_kernel_has_the_clocks_and_they_move() {
    let first = SystemHolderClock.now();
    std::thread::sleep(Duration::from_millis(5));
    let passed = SystemHolderClock.now().since(first);
    assert!((Duration::from_millis(4)..Duration::from_secs(5)).contains(&passed), "{passed:?}");
}
