//! Golden files: bytes that an earlier version wrote. Today's code must read them, and must write the same bytes.
//!
//! With `QUORATE_WRITE_GOLDEN=1` a missing golden file is written. Changed bytes are a new format. It gets a golden
//! file with a new name, and the old file must still be read.

use std::path::{Path, PathBuf};

use openraft::RaftLogReader;
use openraft::storage::RaftLogStorage;
use quorate::codec;
use quorate::domain::Lease;
use quorate::raft_types::{EntryPayload, Vote};
use quorate::random::Random;
use quorate::storage::{StateMeta, Storage};

use crate::storage_fixtures::{
    append, config, entry, lease, log_id, membership, open, read_all, state, write_snapshot,
};

/// Gives fixed bytes instead of random ones, so that the node id is always the same.
struct Fixed;

impl Random for Fixed {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0x5a);
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Checks bytes against a golden file, and returns the content of the file.
pub fn same_as_golden(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = golden(name);
    if !path.exists() && std::env::var_os("QUORATE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, bytes).unwrap();
    }
    let expected = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(bytes == expected, "the bytes of {name} have changed");
    expected
}

#[test]
fn records_keep_their_bytes_and_are_read() {
    let payload = entry(3, 7).payload;
    let bytes = same_as_golden("log_payload.bin", &codec::encode(&payload).unwrap());
    assert_eq!(codec::decode::<EntryPayload>(&bytes).unwrap(), payload);

    let payload = EntryPayload::Membership(membership().membership().clone());
    let bytes = same_as_golden("log_membership.bin", &codec::encode(&payload).unwrap());
    assert_eq!(codec::decode::<EntryPayload>(&bytes).unwrap(), payload);

    let bytes = same_as_golden("lease.bin", &codec::encode(&lease(4)).unwrap());
    assert_eq!(codec::decode::<Lease>(&bytes).unwrap(), lease(4));

    let (_, meta) = state(5, log_id(2, 9));
    let bytes = same_as_golden("state_meta.bin", &codec::encode(&meta).unwrap());
    assert_eq!(codec::decode::<StateMeta>(&bytes).unwrap(), meta);
}

fn open_fixed(dir: &Path) -> Storage {
    quorate::storage::open(config(dir), &Fixed).unwrap()
}

#[tokio::test]
async fn files_keep_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open_fixed(dir.path());
    storage.log.save_vote(&Vote::new_committed(3, 1)).await.unwrap();
    append(&mut storage.log, [entry(3, 0), entry(3, 1)]).await.unwrap();
    write_snapshot(&storage.snapshots, 3, log_id(3, 1));
    storage.identity.set_cluster_id(uuid::Uuid::from_u128(7)).unwrap();
    drop(storage);
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    same_as_golden("identity.bin", &read("identity"));
    same_as_golden("watermark.bin", &read("watermark"));
    same_as_golden("snapshot.bin", &read("snapshots/1-3.snapshot"));
    same_as_golden("log_chunk.bin", &read("log/r-00_000_000_000_000_000_000.wal"));
}

#[tokio::test]
async fn golden_files_are_read() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["log", "snapshots"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
    }
    for (from, to) in [
        ("identity.bin", "identity"),
        ("watermark.bin", "watermark"),
        ("snapshot.bin", "snapshots/1-3.snapshot"),
        ("log_chunk.bin", "log/r-00_000_000_000_000_000_000.wal"),
    ] {
        std::fs::copy(golden(from), dir.path().join(to)).unwrap();
    }
    let mut storage = open(dir.path());
    assert_eq!(storage.identity.node_id(), 0x5a5a_5a5a_5a5a_5a5a >> 11);
    assert_eq!(storage.identity.cluster_id(), Some(uuid::Uuid::from_u128(7)));
    assert_eq!(storage.log.read_vote().await.unwrap(), Some(Vote::new_committed(3, 1)));
    assert_eq!(read_all(&mut storage.log).await, [entry(3, 0), entry(3, 1)]);
    assert_eq!(storage.recovered.applied, Some(log_id(3, 1)));
    assert_eq!(storage.recovered.rooms.leases().len(), 3);
}
