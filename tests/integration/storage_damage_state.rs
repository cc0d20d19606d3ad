//! Damage of the database, the snapshots and the identity. A damaged database is rebuilt, and a damaged snapshot is
//! skipped. A damaged identity is never replaced.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quorate::random::SystemRandom;
use quorate::storage::{Recovered, StorageConfig, StorageError};
use uuid::Uuid;

use crate::storage_fixtures::{
    UnflushedDisk, append, change, config, copy_tree, entry, log_id, open, state, try_open, write_snapshot,
};

/// A log of 30 entries, a snapshot at entry 10, and a database at entry 20.
async fn directory_with_state() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    append(&mut storage.log, (0..30).map(|index| entry(1, index))).await.unwrap();
    write_snapshot(&storage.snapshots, 40, log_id(1, 10));
    let (rooms, meta) = state(80, log_id(1, 20));
    storage.state.replace_all(&rooms, &meta).unwrap();
    storage.state.durable_flush().unwrap();
    dir
}

/// Damages the database of a copy. The start must then find the state of the database or that of the snapshot.
fn recovered_after(intact: &Path, damage: impl FnOnce(&Path)) -> Recovered {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(intact, dir.path());
    damage(&dir.path().join("leases"));
    let recovered = open(dir.path()).recovered;
    let (leases, applied) = match recovered.applied {
        Some(applied) if applied.index == 20 => (80, log_id(1, 20)),
        _ => (40, log_id(1, 10)),
    };
    let (rooms, meta) = state(leases, applied);
    assert_eq!(recovered, Recovered { rooms, applied: meta.applied, membership: meta.membership });
    // The rebuilt database must also be there at the next start.
    assert_eq!(open(dir.path()).recovered, recovered);
    recovered
}

#[tokio::test]
async fn a_damaged_database_is_rebuilt() {
    let intact = directory_with_state().await;
    assert_eq!(recovered_after(intact.path(), |_| {}).applied, Some(log_id(1, 20)));
    let size = fs::metadata(intact.path().join("leases/db")).unwrap().len() as usize;

    let zeroed = recovered_after(intact.path(), |leases| change(&leases.join("db"), |bytes| bytes.fill(0)));
    assert_eq!(zeroed.applied, Some(log_id(1, 10)));
    recovered_after(intact.path(), |leases| fs::remove_dir_all(leases).unwrap());
    for step in 0..8 {
        recovered_after(intact.path(), |leases| change(&leases.join("db"), |bytes| bytes.truncate(size * step / 8)));
    }
    let used = fs::read(intact.path().join("leases/db")).unwrap().iter().rposition(|byte| *byte != 0).unwrap();
    for step in 0..60 {
        let position = used * step / 60;
        recovered_after(intact.path(), |leases| {
            change(&leases.join("db"), |bytes| bytes[position..].iter_mut().take(64).for_each(|byte| *byte ^= 0xff));
        });
    }
}

#[tokio::test]
async fn an_unfinished_file_of_sled_is_removed() {
    let intact = directory_with_state().await;
    for content in ["", "half of a file"] {
        let recovered =
            recovered_after(intact.path(), |leases| fs::write(leases.join("snap.0000.generating"), content).unwrap());
        assert_eq!(recovered.applied, Some(log_id(1, 20)), "the database itself is intact");
    }
}

#[tokio::test]
async fn the_last_two_damaged_databases_are_kept() {
    let dir = directory_with_state().await;
    for _ in 0..4 {
        fs::write(dir.path().join("leases/conf"), "not a setting of sled").unwrap();
        drop(open(dir.path()));
    }
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("quarantine-")).count(), 2);
}

#[tokio::test]
async fn a_damaged_snapshot_is_skipped_for_an_older_one() {
    let intact = directory_with_state().await;
    let name = Path::new("snapshots/10-1.snapshot");
    let length = fs::metadata(intact.path().join(name)).unwrap().len() as usize;
    let elsewhere = tempfile::tempdir().unwrap();
    let older = write_snapshot(&open(elsewhere.path()).snapshots, 5, log_id(1, 5)).path;
    for position in (0..length).step_by(97) {
        let dir = tempfile::tempdir().unwrap();
        copy_tree(intact.path(), dir.path());
        // An intact older snapshot, as after a crash between writing the newer one and removing the older one.
        fs::copy(&older, dir.path().join("snapshots/5-1.snapshot")).unwrap();
        change(&dir.path().join(name), |bytes| bytes[position] ^= 0x10);
        let storage = open(dir.path());
        let current = storage.snapshots.current().unwrap();
        assert_eq!(current.meta.last_log_id, Some(log_id(1, 5)), "{position}");
        assert_eq!(storage.recovered.applied, Some(log_id(1, 20)));
    }
}

#[tokio::test]
async fn a_damaged_received_snapshot_is_rejected_and_its_file_removed() {
    let dir = directory_with_state().await;
    let storage = open(dir.path());
    let current = storage.snapshots.current().unwrap();
    let good = fs::read(&current.path).unwrap();
    for length in [0, 1, 20, good.len() / 2, good.len() - 33, good.len() - 1] {
        let mut incoming = storage.snapshots.begin_incoming().await.unwrap();
        incoming.write(good[..length].to_vec()).await.unwrap();
        assert!(matches!(incoming.verify().await, Err(StorageError::Damaged { .. })), "{length}");
    }
    assert_eq!(storage.snapshots.current().unwrap(), current);
    drop(storage);
    drop(open(dir.path()));
    let names = fs::read_dir(dir.path().join("snapshots")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["10-1.snapshot"]);
}

#[tokio::test]
async fn a_damaged_identity_is_not_replaced() {
    let dir = directory_with_state().await;
    change(&dir.path().join("identity"), |bytes| bytes[11] ^= 4);
    assert!(matches!(try_open(dir.path()), Err(StorageError::Damaged { .. })));
}

/// A node must not act as a member of a cluster before the id of the cluster is stored.
#[tokio::test]
async fn a_cluster_id_that_could_not_be_stored_is_unknown_until_it_is_stored() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = Arc::new(UnflushedDisk::default());
    let config = StorageConfig { disk: disk.clone(), ..config(dir.path()) };
    let mut storage = quorate::storage::open(config, &SystemRandom).unwrap();
    let cluster = Uuid::from_u128(7);

    disk.fails.store(true, Ordering::Relaxed);
    storage.identity.set_cluster_id(cluster).unwrap_err();
    disk.fails.store(false, Ordering::Relaxed);
    assert_eq!(storage.identity.cluster_id(), None, "the next message from this cluster must store it");
    copy_tree(dir.path(), copy.path());
    assert_eq!(open(copy.path()).identity.cluster_id(), None);
    storage.identity.set_cluster_id(cluster).unwrap();
    assert_eq!(storage.identity.cluster_id(), Some(cluster));
    drop(storage);
    assert_eq!(open(dir.path()).identity.cluster_id(), Some(cluster));
}
