//! Random bytes in place of a snapshot message. See `codec::fuzz_tests`.

use futures::TryStreamExt;
use proptest::prelude::*;

use super::*;
use crate::codec::fuzz_tests::{golden, mutated, payload_of, sealed};

/// Reads a message that arrives in pieces. Gives its head and its file.
fn read(message: &[u8], piece_bytes: usize) -> Option<(SnapshotHead, Vec<u8>)> {
    let pieces = stream::iter(message.chunks(piece_bytes).map(|piece| Ok(piece.to_vec())));
    let read = async {
        let (head, file) = read_snapshot(pieces).await?;
        Ok::<_, BrokenSnapshot>((head, file.try_concat().await?))
    };
    futures::executor::block_on(read).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]
    #[test]
    fn head_and_file_are_told_apart_wherever_the_message_is_cut(content: Vec<u8>, piece_bytes in 1..200_usize) {
        let head = golden("snapshot_head.bin");
        let (found, file) = read(&[&*head, &*content].concat(), piece_bytes).unwrap();
        prop_assert_eq!(codec::encode(&found).unwrap(), head);
        prop_assert_eq!(file, content);
    }

    #[test]
    fn a_damaged_head_is_an_error_wherever_the_message_is_cut(
        payload in mutated(vec![payload_of(&golden("snapshot_head.bin")).to_vec()]),
        is_cut: bool,
        piece_bytes in 1..200_usize,
    ) {
        let mut bytes = sealed(&payload);
        let whole = codec::decode::<SnapshotHead>(&bytes).is_ok();
        if is_cut {
            bytes.pop();
        }
        prop_assert_eq!(read(&bytes, piece_bytes).is_some(), whole && !is_cut);
    }
}
