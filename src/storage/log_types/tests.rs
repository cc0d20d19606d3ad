use openraft::type_config::TypeConfigExt;
use raft_log::Callback;

use super::*;

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    let reported = value.encode(&mut bytes).unwrap();
    assert_eq!(reported, bytes.len());
    bytes
}

#[test]
fn ids_have_a_fixed_size_and_are_read_back() {
    for (raft_term, index) in [(0, 0), (1, 2), (u64::MAX, u64::MAX)] {
        let log_id = StoredLogId(LogId { leader_id: raft_term.into(), index });
        let bytes = encoded(&log_id);
        assert_eq!(bytes.len(), 16);
        assert_eq!(StoredLogId::decode(&bytes[..]).unwrap(), log_id);
        for vote in [Vote::new(raft_term, index), Vote::new_committed(raft_term, index)] {
            let bytes = encoded(&StoredVote(vote));
            assert_eq!(bytes.len(), 17);
            assert_eq!(StoredVote::decode(&bytes[..]).unwrap(), StoredVote(vote));
        }
    }
}

#[test]
fn a_vote_with_an_impossible_flag_is_damage() {
    let mut bytes = encoded(&StoredVote(Vote::new(1, 2)));
    bytes[16] = 2;
    assert_eq!(StoredVote::decode(&bytes[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_payload_with_a_damaged_length_is_no_torn_tail() {
    let bytes = encoded(&Payload(Arc::new(EntryPayload::Blank)));
    for bit in 0..9 * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Payload::decode(&damaged[..]).unwrap_err().kind(), io::ErrorKind::InvalidData, "bit {bit}");
    }
    assert_eq!(Payload::decode(&bytes[..bytes.len() - 1]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn who_waits_hears_when_the_log_forgets_it() {
    let (answer, answered) = TypeConfig::oneshot();
    drop(Waiting::new(IOFlushed::signal(answer)));
    assert!(answered.await.unwrap().is_err());
}

#[tokio::test]
async fn all_of_a_group_hear_of_its_failure() {
    let (first, first_heard) = TypeConfig::oneshot();
    let (second, second_heard) = TypeConfig::oneshot();
    let (done, heard) = std::sync::mpsc::sync_channel(1);
    let waiting = vec![Waiting::new(IOFlushed::signal(first)), Waiting::new(IOFlushed::signal(second))];
    FlushGroup { waiting, done }.send(Err(io::Error::from(io::ErrorKind::StorageFull)));
    assert_eq!(first_heard.await.unwrap().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(second_heard.await.unwrap().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(heard.recv().unwrap().is_err());
}
