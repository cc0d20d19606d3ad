use super::*;

#[test]
fn arithmetic_saturates() {
    assert_eq!(LogTime(u64::MAX).after(Duration::from_secs(1)), LogTime(u64::MAX));
    assert_eq!(LogTime(1).since(LogTime(5)), Duration::ZERO);
}

#[test]
fn lease_durations_are_checked_at_both_ends() {
    assert_eq!(LeaseDuration::from_secs(4), None);
    assert!(LeaseDuration::from_secs(5).is_some());
    assert!(LeaseDuration::from_secs(300).is_some());
    assert_eq!(LeaseDuration::from_secs(301), None);
    assert_eq!(LeaseDuration::from_secs(u64::MAX), None);
}

#[test]
fn the_guard_outlasts_a_holder_500_ppm_slow_under_a_raft_leader_500_ppm_fast() {
    for seconds in [5, 30, 300] {
        let lease = LeaseDuration::from_secs(seconds).unwrap();
        let acts_at_most = lease.as_duration().as_secs_f64() / (1.0 - 500e-6);
        let occupied_at_least = (lease.as_duration() + lease.guard()).as_secs_f64() / (1.0 + 500e-6);
        assert!(acts_at_most < occupied_at_least, "{seconds}");
    }
}
