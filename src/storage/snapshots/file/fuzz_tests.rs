//! Damaged and random bytes for the decoder. See `codec::fuzz_tests`.

use proptest::prelude::*;

use super::*;
use crate::codec::fuzz_tests::{
    Written, bounded, each_damage, golden, payload_of, rules_go_on, sealed, try_on, value_in,
};

/// The payloads of all frames in a snapshot.
fn frames_of(snapshot: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &snapshot[..snapshot.len() - 32];
    let mut payloads = Vec::new();
    while !rest.is_empty() {
        let payload_bytes = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
        let (frame, after) = rest.split_at(9 + payload_bytes + 4);
        payloads.push(payload_of(frame).to_vec());
        rest = after;
    }
    payloads
}

/// A snapshot with these payloads, and with the right checksums.
fn snapshot_of(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes: Vec<u8> = payloads.iter().flat_map(|payload| sealed(payload)).collect();
    bytes.extend_from_slice(&Sha256::digest(&bytes));
    bytes
}

/// Writes the bytes to a file and reads it as a snapshot. Returns whether it was accepted.
fn read_snapshot(folder: &Path, bytes: &[u8]) -> bool {
    let path = folder.join("1-3.snapshot");
    // A new file each time: if a file is truncated and written again, ext4 flushes it, which is slow.
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, bytes).unwrap();
    match bounded(bytes.len(), || read(&path)) {
        Ok((file, rooms)) => {
            assert_eq!(file.bytes, bytes.len() as u64);
            let leases = rooms.leases().map(|(room, lease)| (room.clone(), lease.clone())).collect();
            rules_go_on(rooms.counters(), leases);
            true
        }
        Err(error) => {
            // The damage can change the format, and the checksums are right.
            assert!(matches!(error, StorageError::Damaged { .. } | StorageError::Newer { .. }), "{error}");
            false
        }
    }
}

#[test]
fn a_damaged_snapshot_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let whole = golden("snapshot.bin");
    let payloads = frames_of(&whole);
    assert_eq!(snapshot_of(&payloads), whole);
    assert!(read_snapshot(folder.path(), &whole));
    // Only every fifth kind of damage, because each case writes and reads a file.
    for damaged in each_damage(&whole).step_by(5) {
        assert!(damaged == whole || !read_snapshot(folder.path(), &damaged), "this damage was not noticed");
    }
    // A damaged header, and a damaged lease, each with the right checksums around it.
    for place in [0, 1] {
        try_on(vec![payloads[place].clone()], |payload| {
            let mut damaged = payloads.clone();
            damaged[place] = payload.to_vec();
            read_snapshot(folder.path(), &snapshot_of(&damaged));
        });
    }
    // Frames that are missing, repeated, or in another order.
    let places = prop::collection::vec(0..payloads.len(), 0..6);
    proptest!(|(places in places)| {
        let chosen: Vec<_> = places.iter().map(|place| payloads[*place].clone()).collect();
        let is_whole = places.iter().copied().eq(0..payloads.len());
        prop_assert_eq!(read_snapshot(folder.path(), &snapshot_of(&chosen)), is_whole);
    });
    let header: Header = value_in(&payloads[0], Written::InSomeOrder).unwrap();
    for leases in [0, 2, 4, 1 << 60, u64::MAX] {
        let lying = codec::encode(&Header { leases, ..header.clone() }).unwrap();
        let damaged = [&[payload_of(&lying).to_vec()], &payloads[1..]].concat();
        assert!(!read_snapshot(folder.path(), &snapshot_of(&damaged)), "its header claims {leases} leases");
    }
}
