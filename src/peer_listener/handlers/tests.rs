use super::*;
use crate::codec::fuzz_tests::golden;
use crate::storage::Blocking;

/// Receives a snapshot message that arrives in these pieces. Returns the content of its file, or `None` if the message
/// was rejected. Checks that a rejected message leaves no file.
async fn received(pieces: Vec<std::io::Result<Vec<u8>>>) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("incoming");
    let incoming = IncomingSnapshot::create(path.clone(), Blocking::AtOnce).await.unwrap();
    let received = write_to_file(Body::from_stream(futures::stream::iter(pieces)), incoming).await.ok();
    assert_eq!(path.exists(), received.is_some());
    let (_, incoming) = received?;
    let content = std::fs::read(&path).unwrap();
    assert_eq!(incoming.bytes(), content.len() as u64);
    Some(content)
}

#[tokio::test]
async fn a_snapshot_is_written_to_its_file() {
    let pieces = vec![Ok([golden("snapshot_head.bin"), b"the".to_vec()].concat()), Ok(b" file".to_vec())];
    assert_eq!(received(pieces).await.as_deref(), Some(&b"the file"[..]));
}

#[tokio::test]
async fn a_broken_snapshot_leaves_no_file_behind() {
    assert_eq!(received(vec![Ok(b"not a head".to_vec())]).await, None);
    assert_eq!(received(vec![Ok(golden("snapshot_head.bin")[..20].to_vec())]).await, None);
    let interrupted = vec![Ok(golden("snapshot_head.bin")), Err(std::io::Error::other("the connection failed"))];
    assert_eq!(received(interrupted).await, None);
}
