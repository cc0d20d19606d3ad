use super::*;

#[test]
fn a_time_after_the_end_of_the_calendar_becomes_its_last_moment() {
    assert_eq!(rfc_3339(WallTime(0)), "1970-01-01T00:00:00.000Z");
    assert_eq!(rfc_3339(WallTime(u64::MAX)), "9999-12-30T22:00:00.999Z");
    assert_eq!(rfc_3339(WallTime(1_000)), "1970-01-01T00:00:01.000Z");
}
