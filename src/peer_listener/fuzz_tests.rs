//! Bytes that nobody wrote, on the peer listener. See `codec::fuzz_tests`.

use proptest::prelude::*;

use super::*;
use crate::codec::fuzz_tests::{golden, mutated, payload_of, sealed};
use crate::storage::Blocking;

/// Has a snapshot received that comes in pieces, and gives its head and what was written of the rest.
fn received(bytes: &[u8], piece_bytes: usize) -> Option<(SnapshotHead, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("incoming");
    let pieces: Vec<_> =
        bytes.chunks(piece_bytes).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
    let body = Body::from_stream(futures::stream::iter(pieces));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let received = async {
        let incoming = IncomingSnapshot::create(path.clone(), Blocking::AtOnce).await.unwrap();
        receive_snapshot(body, incoming).await
    };
    let received = runtime.block_on(received).ok();
    assert_eq!(path.exists(), received.is_some(), "what is refused leaves nothing behind");
    let (head, incoming) = received?;
    let content = std::fs::read(&path).unwrap();
    assert_eq!(incoming.bytes(), content.len() as u64);
    Some((head, content))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]
    #[test]
    fn the_head_of_a_snapshot_is_found_however_it_is_cut(content: Vec<u8>, piece_bytes in 1..200_usize) {
        let head = golden("snapshot_head.bin");
        let (found, rest) = received(&[&*head, &*content].concat(), piece_bytes).unwrap();
        prop_assert_eq!(codec::encode(&found).unwrap(), head);
        prop_assert_eq!(rest, content);
    }

    #[test]
    fn a_head_that_is_none_is_refused_however_it_is_cut(
        payload in mutated(vec![payload_of(&golden("snapshot_head.bin")).to_vec()]),
        is_cut: bool,
        piece_bytes in 1..200_usize,
    ) {
        let mut bytes = sealed(&payload);
        let whole = codec::decode::<SnapshotHead>(&bytes).is_ok();
        if is_cut {
            bytes.pop();
        }
        prop_assert_eq!(received(&bytes, piece_bytes).is_some(), whole && !is_cut);
    }

    #[test]
    fn headers_are_read_or_refused(value: Vec<u8>) {
        let Ok(value) = axum::http::HeaderValue::from_bytes(&value) else { return Ok(()) };
        let headers = HeaderMap::from_iter([(axum::http::HeaderName::from_static(header::TO), value.clone())]);
        let number = number::<u64>(&headers, header::TO).ok();
        prop_assert_eq!(number, value.to_str().ok().and_then(|text| text.parse().ok()));
        let secret = ClusterSecret::new("correct horse battery".to_owned().into());
        prop_assert!(!secret.is_proven_by(Some(value.as_bytes())));
    }
}
