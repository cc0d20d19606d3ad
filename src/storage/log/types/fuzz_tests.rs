//! Damaged and random bytes for the decoder. See `codec::fuzz_tests`.

use super::*;
use crate::codec::fuzz_tests::{bounded, golden, payload_of, sealed, try_on};
use crate::domain::Command;

fn written(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes).unwrap();
    bytes
}

/// Tries damaged bytes on a decoder. If `is_kept`, an accepted value must be encoded as the bytes that were read.
/// The items of a membership are read in any order and written in sorted order, so its bytes can differ.
fn try_log_type<T: Encode + Decode>(seed: &T, is_kept: bool) {
    try_on(vec![written(seed)], |bytes| {
        let mut rest = bytes;
        if let Ok(value) = bounded(bytes.len(), || T::decode(&mut rest)) {
            let again = written(&value);
            assert!(!is_kept || again == bytes[..bytes.len() - rest.len()], "{bytes:?} is written as {again:?}");
        }
    });
}

#[test]
fn damaged_ids_and_votes_in_the_log_are_errors_and_no_panics() {
    let bytes = [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 1];
    try_log_type(&StoredLogId::decode(&bytes[..16]).unwrap(), true);
    try_log_type(&StoredVote::decode(&bytes[..]).unwrap(), true);
}

#[test]
fn damaged_payloads_in_the_log_are_errors_and_no_panics() {
    for (name, is_kept) in [("log_payload.bin", true), ("log_membership.bin", false)] {
        let frame = golden(name);
        try_log_type(&Payload(Arc::new(codec::decode(&frame).unwrap())), is_kept);
        // The checksums are right, so that the decoder sees the damaged payload.
        try_on(vec![payload_of(&frame).to_vec()], |payload| {
            let frame = sealed(payload);
            if let Ok(payload) = bounded(frame.len(), || Payload::decode(&*frame)) {
                assert!(payload.approximate_bytes() < (1 << 30), "{payload:?}");
            }
        });
    }
    let commands: Vec<Command> = codec::decode(&golden("commands.bin")).unwrap();
    for command in commands {
        try_log_type(&Payload(Arc::new(EntryPayload::Normal(command))), true);
    }
}
