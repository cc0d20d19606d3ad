use super::*;

#[test]
fn silence_and_new_attempts_alternate_after_a_raft_election_timeout_without_a_quorum() {
    let silence = Silence::new(Duration::from_millis(500));
    let due: Vec<u64> =
        (0..5_000).step_by(250).filter(|millis| silence.is_due_after(Duration::from_millis(*millis))).collect();
    assert_eq!(due, [500, 750, 1_000, 1_250, 2_500, 2_750, 3_000, 3_250, 4_500, 4_750]);
}

#[test]
fn entries_are_sent_before_the_raft_core_runs() {
    assert!(!Silence::new(Duration::from_millis(500)).is_due());
}
