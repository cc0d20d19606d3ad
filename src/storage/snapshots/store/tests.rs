//! Snapshots that are built and received at the same time.

use std::path::Path;
use std::sync::Barrier;

use super::*;
use crate::raft_types::{LogId, StoredMembership};
use crate::storage::StorageConfig;
use crate::storage::disk::tests::UnflushedDisk;

fn store(folder: &Path) -> SnapshotStore {
    let config = StorageConfig { disk: Arc::new(UnflushedDisk), ..StorageConfig::new(folder, "node-a") };
    SnapshotStore::open(Arc::new(DataDir::open(&config).unwrap())).unwrap()
}

fn write_up_to(snapshots: &SnapshotStore, index: u64) -> SnapshotFile {
    let last_log_id = Some(LogId { leader_id: 1.into(), index });
    let meta = SnapshotMeta { last_log_id, last_membership: StoredMembership::default() };
    snapshots.write(None, &meta, Counters::default(), std::iter::empty()).unwrap()
}

fn names(snapshots: &SnapshotStore) -> Vec<String> {
    files::names_in(THING, &snapshots.inner.folder).unwrap()
}

#[test]
fn an_older_snapshot_that_is_finished_later_is_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = store(folder.path());
    let newer = write_up_to(&snapshots, 500);
    assert_eq!(write_up_to(&snapshots, 100), newer, "the newest snapshot is returned");
    assert_eq!(snapshots.current(), Some(newer));
    assert_eq!(names(&snapshots), ["500-1.snapshot"]);
}

#[test]
fn snapshots_published_at_once_leave_only_the_newest() {
    const ROUNDS: u64 = 300;
    const THREADS: u64 = 4;
    let folder = tempfile::tempdir().unwrap();
    let snapshots = store(folder.path());
    for round in 0..ROUNDS {
        let barrier = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (snapshots, barrier) = (&snapshots, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    write_up_to(snapshots, 1 + round * THREADS + thread);
                });
            }
        });
        let newest = snapshots.current().unwrap();
        assert_eq!(newest.meta.last_log_id.unwrap().index, (round + 1) * THREADS);
        assert!(newest.path.exists(), "round {round}: {:?}", names(&snapshots));
    }
    assert_eq!(names(&snapshots), [format!("{}-1.snapshot", ROUNDS * THREADS)]);
}

#[test]
fn a_damaged_snapshot_can_be_replaced_by_one_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = store(folder.path());
    let damaged = write_up_to(&snapshots, 100);
    std::fs::write(&damaged.path, "damaged").unwrap();
    let rebuilt = write_up_to(&snapshots, 100);
    assert_eq!(snapshots.load(&rebuilt).unwrap().0, rebuilt.meta);
    assert_eq!(names(&snapshots), ["100-1.snapshot"]);
}
