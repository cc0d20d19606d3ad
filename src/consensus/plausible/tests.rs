use openraft::EntryPayload;

use super::*;
use crate::raft_types::numbers::{LOG_INDEX_MAX, RAFT_TERM_MAX};
use crate::raft_types::{Entry, SnapshotMeta, StoredMembership};

const OWN: u64 = 7;

fn log_id(raft_term: u64, index: u64) -> LogId {
    LogId { leader_id: openraft::vote::leader_id_std::CommittedLeaderId { term: raft_term }, index }
}

fn append(
    raft_term: u64,
    before: Option<LogId>,
    entries: &[LogId],
    commit: Option<LogId>,
) -> AppendEntriesRequest<TypeConfig> {
    AppendEntriesRequest {
        vote: Vote::new_committed(raft_term, 1),
        prev_log_id: before,
        entries: entries.iter().map(|log_id| Entry { log_id: *log_id, payload: EntryPayload::Blank }).collect(),
        leader_commit: commit,
    }
}

/// One message for each place that a vote or a log id can have.
fn messages(raft_term: u64, id: LogId) -> Vec<Box<dyn Fn() -> Result<(), Untrue>>> {
    let (vote, good, some) = (Vote::new(raft_term, 1), Vote::new(OWN, 1), Some(id));
    let snapshot = move |vote: Vote, last: Option<LogId>, members: Option<LogId>| SnapshotHead {
        vote,
        meta: SnapshotMeta { last_log_id: last, last_membership: StoredMembership::new(members, Default::default()) },
    };
    vec![
        Box::new(move || check(&append(raft_term, None, &[], None), OWN)),
        Box::new(move || check(&append(OWN, some, &[], None), OWN)),
        Box::new(move || check(&append(OWN, None, &[id], None), OWN)),
        Box::new(move || check(&append(OWN, None, &[log_id(OWN, 0), id], None), OWN)),
        Box::new(move || check(&append(OWN, None, &[], some), OWN)),
        Box::new(move || check(&AppendEntriesResponse::PartialSuccess(some), OWN)),
        Box::new(move || check(&AppendEntriesResponse::HigherVote(vote), OWN)),
        Box::new(move || check(&VoteRequest::<TypeConfig>::new(vote, None), OWN)),
        Box::new(move || check(&VoteRequest::<TypeConfig>::new(good, some), OWN)),
        Box::new(move || check(&VoteResponse::<TypeConfig>::new(vote, None, true), OWN)),
        Box::new(move || check(&VoteResponse::<TypeConfig>::new(good, some, true), OWN)),
        Box::new(move || check(&TransferLeaderRequest::<TypeConfig>::new(vote, 1, None), OWN)),
        Box::new(move || check(&TransferLeaderRequest::<TypeConfig>::new(good, 1, some), OWN)),
        Box::new(move || check(&snapshot(vote, None, None), OWN)),
        Box::new(move || check(&snapshot(good, some, None), OWN)),
        Box::new(move || check(&snapshot(good, None, some), OWN)),
        Box::new(move || check(&SnapshotResponse::<TypeConfig>::new(vote), OWN)),
    ]
}

#[test]
fn an_absurd_raft_term_is_found_in_every_place_of_every_message() {
    for absurd in [u64::MAX, RAFT_TERM_MAX + 1, RAFT_TERM_MAX, OWN + RAFT_TERM_LEAD_MAX + 1] {
        for (place, checked) in messages(absurd, log_id(absurd, 3)).iter().enumerate() {
            assert!(checked().is_err(), "raft term {absurd} in place {place}");
        }
    }
    for real in [0, 1, OWN, OWN + 1, OWN + RAFT_TERM_LEAD_MAX] {
        for (place, checked) in messages(real, log_id(real, LOG_INDEX_MAX)).iter().enumerate() {
            assert_eq!(checked(), Ok(()), "raft term {real} in place {place}");
        }
    }
}

#[test]
fn an_absurd_log_index_is_found_in_every_place_of_every_message() {
    for absurd in [u64::MAX, LOG_INDEX_MAX + 1] {
        let found = messages(OWN, log_id(OWN, absurd)).iter().filter(|checked| checked().is_err()).count();
        assert_eq!(found, 10, "log index {absurd}: all messages with a log id");
    }
}

#[test]
fn entries_must_follow_each_other_and_belong_to_the_reign() {
    let first = log_id(3, 4);
    for good in [
        append(3, None, &[], None),
        append(3, None, &[log_id(1, 0), log_id(3, 1)], None),
        append(3, Some(first), &[log_id(3, 5), log_id(3, 6)], None),
    ] {
        assert_eq!(check_order(&good), Ok(()));
    }
    for bad in [
        append(3, None, &[log_id(1, 1)], None),
        append(3, Some(first), &[log_id(3, 4)], None),
        append(3, Some(first), &[log_id(3, 6)], None),
        append(3, Some(first), &[log_id(3, 5), log_id(3, 5)], None),
        append(3, Some(first), &[log_id(2, 5)], None),
        append(3, Some(first), &[log_id(4, 5)], None),
    ] {
        assert!(matches!(check_order(&bad), Err(Untrue::Gap { .. })), "{bad:?}");
    }
}

#[test]
fn an_answer_to_an_append_must_be_about_the_entries_that_were_sent() {
    let (first, last) = (Some(log_id(3, 4)), Some(log_id(3, 9)));
    for good in [first, Some(log_id(3, 6)), last] {
        assert_eq!(check_answer(&AppendEntriesResponse::PartialSuccess(good), first, last), Ok(()));
    }
    for bad in [None, Some(log_id(3, 3)), Some(log_id(3, 10)), Some(log_id(4, 5))] {
        let answer = AppendEntriesResponse::PartialSuccess(bad);
        assert!(matches!(check_answer(&answer, first, last), Err(Untrue::NotSent(_))), "{bad:?}");
    }
    assert_eq!(check_answer(&AppendEntriesResponse::Success, first, last), Ok(()));
}
