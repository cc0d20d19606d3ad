use super::*;

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    let reported = value.encode(&mut bytes).unwrap();
    assert_eq!(reported, bytes.len());
    bytes
}

#[test]
fn ids_have_a_fixed_size_and_can_be_read_again() {
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
fn a_vote_with_an_invalid_flag_is_damaged() {
    let mut bytes = encoded(&StoredVote(Vote::new(1, 2)));
    bytes[16] = 2;
    assert_eq!(StoredVote::decode(&bytes[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_damaged_length_is_not_mistaken_for_an_incomplete_write() {
    let bytes = encoded(&Payload(Arc::new(EntryPayload::Blank)));
    for bit in 0..9 * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Payload::decode(&damaged[..]).unwrap_err().kind(), io::ErrorKind::InvalidData, "bit {bit}");
    }
    assert_eq!(Payload::decode(&bytes[..bytes.len() - 1]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}
