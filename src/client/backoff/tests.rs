use super::*;

#[test]
fn pauses_grow_to_the_longest_and_are_never_shorter_than_the_shortest() {
    let mut longest = Backoff::new();
    let pauses: Vec<_> = (0..8).map(|_| longest.next(Fraction(1_000)).as_millis()).collect();
    assert_eq!(pauses, [300, 900, 2_700, 5_000, 5_000, 5_000, 5_000, 5_000]);
    let mut shortest = Backoff::new();
    assert!((0..8).all(|_| shortest.next(Fraction(0)) == PAUSE_MIN));
}

#[test]
fn jitter_is_at_most_a_tenth_in_either_direction() {
    let ten = Duration::from_secs(10);
    assert_eq!(Fraction(0).jitter(ten), Duration::from_secs(9));
    assert_eq!(Fraction(500).jitter(ten), ten);
    assert_eq!(Fraction(1_000).jitter(ten), Duration::from_secs(11));
    assert_eq!(Fraction(1_000).up_to_a_tenth_of(ten), Duration::from_secs(1));
    assert!((0..1_000).all(|_| Fraction::random().0 <= 1_000));
}
