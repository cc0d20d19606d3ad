//! Damage of the log files. A start either finds everything that was acknowledged, or reports the damage. It never
//! silently finds less.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::RaftLogReader;
use openraft::storage::RaftLogStorage;
use quorate::raft_types::Vote;
use quorate::random::SystemRandom;
use quorate::storage::{StorageConfig, StorageError};

use crate::storage_fixtures::{UnflushedDisk, append, change, config, copy_tree, entry, open, read_all};

/// Enough for several files of [`CHUNK_BYTES`] with entries in the last one, and few enough to flip every byte.
const ENTRIES: u64 = 14;
const CHUNK_BYTES: usize = 900;

fn config_with_small_files(dir: &Path) -> StorageConfig {
    StorageConfig { log_chunk_bytes: CHUNK_BYTES, ..config(dir) }
}

/// A directory with a vote and entries, acknowledged one by one.
///
/// If `closed` is false, the copy is made before the watermark's index is raised, as after a power cut.
async fn directory_after_a_cut(closed: bool) -> tempfile::TempDir {
    let (live, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut storage = quorate::storage::open(config_with_small_files(live.path()), &SystemRandom).unwrap();
    storage.log.save_vote(&Vote::new(1, 1)).await.unwrap();
    for index in 0..ENTRIES {
        append(&mut storage.log, [entry(1, index)]).await.unwrap();
    }
    if closed {
        drop(storage);
        copy_tree(live.path(), copy.path());
    } else {
        copy_tree(live.path(), copy.path());
    }
    copy
}

fn log_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir.join("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wal"));
    files.sort();
    files
}

#[derive(Debug, PartialEq)]
enum Found {
    /// The vote and this many entries, all as they were written.
    Opened { vote: bool, entries: u64 },
    /// The start reported damage.
    Damaged,
}

/// Damages a copy, and returns what a start finds.
async fn after(intact: &Path, damage: impl FnOnce(&Path)) -> Found {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(intact, dir.path());
    damage(dir.path());
    match quorate::storage::open(config_with_small_files(dir.path()), &SystemRandom) {
        Ok(mut storage) => {
            let vote = storage.log.read_vote().await.unwrap();
            assert!(vote.is_none() || vote == Some(Vote::new(1, 1)), "{vote:?}");
            let entries = read_all(&mut storage.log).await;
            for (index, found) in entries.iter().enumerate() {
                assert_eq!(*found, entry(1, index as u64));
            }
            // A log that opens must also take new entries.
            append(&mut storage.log, [entry(1, entries.len() as u64)]).await.unwrap();
            Found::Opened { vote: vote.is_some(), entries: entries.len() as u64 }
        }
        Err(StorageError::Damaged { .. }) => Found::Damaged,
        Err(error) => panic!("{error}"),
    }
}

const WHOLE: Found = Found::Opened { vote: true, entries: ENTRIES };

#[tokio::test]
async fn an_intact_log_is_found_whole() {
    for closed in [true, false] {
        let intact = directory_after_a_cut(closed).await;
        assert!(log_files(intact.path()).len() > 2, "the tests need a first, a middle and a last file");
        assert_eq!(after(intact.path(), |_| {}).await, WHOLE);
    }
}

#[tokio::test]
async fn a_flipped_byte_never_loses_an_entry_silently() {
    let intact = directory_after_a_cut(false).await;
    for file in log_files(intact.path()) {
        let name = file.strip_prefix(intact.path()).unwrap();
        for position in 0..fs::metadata(&file).unwrap().len() as usize {
            for mask in [0x01, 0x80, 0xff] {
                let found = after(intact.path(), |dir| change(&dir.join(name), |bytes| bytes[position] ^= mask)).await;
                assert!(found == Found::Damaged || found == WHOLE, "{name:?} {position} {mask:#x}: {found:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_truncated_last_file_loses_only_the_bytes_cut_off_or_is_reported() {
    for closed in [true, false] {
        let intact = directory_after_a_cut(closed).await;
        let last = log_files(intact.path()).pop().unwrap();
        let name = last.strip_prefix(intact.path()).unwrap();
        let length = fs::metadata(&last).unwrap().len();
        for cut in 1..=length {
            let found = after(intact.path(), |dir| {
                OpenOptions::new().write(true).open(dir.join(name)).unwrap().set_len(length - cut).unwrap();
            })
            .await;
            match found {
                Found::Damaged => {}
                // This happens only if the watermark's index was not raised yet. An entry has more than 100 bytes, so
                // the lost entries are those that were cut off.
                Found::Opened { vote: true, entries } => {
                    assert!(!closed && ENTRIES - entries <= cut.div_ceil(100), "{cut}: {entries}");
                }
                found => panic!("{cut}: {found:?}"),
            }
        }
    }
}

#[tokio::test]
async fn zeros_after_the_end_are_ignored_and_garbage_is_reported() {
    let intact = directory_after_a_cut(false).await;
    let last = log_files(intact.path()).pop().unwrap();
    let name = last.strip_prefix(intact.path()).unwrap();
    for zeros in [1, 7, 8, 64, 4_096, 100_000] {
        let found = after(intact.path(), |dir| change(&dir.join(name), |bytes| bytes.extend(vec![0; zeros]))).await;
        assert_eq!(found, WHOLE, "{zeros}");
    }
    for garbage in [8, 64, 4_096] {
        let found =
            after(intact.path(), |dir| change(&dir.join(name), |bytes| bytes.extend(vec![0xa5; garbage]))).await;
        assert_eq!(found, Found::Damaged, "{garbage}");
    }
}

#[tokio::test]
async fn a_log_file_that_is_missing_or_zeroed_or_truncated_is_reported() {
    for closed in [true, false] {
        let intact = directory_after_a_cut(closed).await;
        let files = log_files(intact.path());
        for (number, file) in files.iter().enumerate() {
            let name = file.strip_prefix(intact.path()).unwrap();
            let found = after(intact.path(), |dir| fs::remove_file(dir.join(name)).unwrap()).await;
            assert_eq!(found, Found::Damaged, "missing: {number} of {}, closed: {closed}", files.len());
            let found = after(intact.path(), |dir| change(&dir.join(name), |bytes| bytes.fill(0))).await;
            assert_eq!(found, Found::Damaged, "zeroed: {number} of {}, closed: {closed}", files.len());
            if number + 1 < files.len() {
                let found = after(intact.path(), |dir| change(&dir.join(name), |bytes| bytes.truncate(200))).await;
                assert_eq!(found, Found::Damaged, "truncated: {number} of {}, closed: {closed}", files.len());
            }
        }
    }
}

#[tokio::test]
async fn a_log_that_is_missing_or_older_than_its_watermark_is_reported() {
    let intact = directory_after_a_cut(true).await;
    let remove_log = |dir: &Path| fs::remove_dir_all(dir.join("log")).unwrap();
    assert_eq!(after(intact.path(), remove_log).await, Found::Damaged);
    let remove_watermark = |dir: &Path| fs::remove_file(dir.join("watermark")).unwrap();
    assert_eq!(after(intact.path(), remove_watermark).await, Found::Damaged);
    let break_watermark = |dir: &Path| change(&dir.join("watermark"), |bytes| bytes[12] ^= 1);
    assert_eq!(after(intact.path(), break_watermark).await, Found::Damaged);

    // As if only the log had been restored from a backup.
    let older = tempfile::tempdir().unwrap();
    drop(open(older.path()));
    let restore_log = |dir: &Path| {
        remove_log(dir);
        copy_tree(&older.path().join("log"), &dir.join("log"));
    };
    assert_eq!(after(intact.path(), restore_log).await, Found::Damaged);
}

/// The watermark is written after the log has acknowledged its entries, so no writer waits for it.
#[tokio::test]
async fn a_failed_write_of_the_watermark_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(UnflushedDisk::default());
    let config = StorageConfig { disk: disk.clone(), ..config(dir.path()) };
    let mut storage = quorate::storage::open(config, &SystemRandom).unwrap();
    append(&mut storage.log, [entry(1, 0), entry(1, 1)]).await.unwrap();
    disk.fails.store(true, Ordering::Relaxed);
    let failure = tokio::time::timeout(Duration::from_secs(10), storage.log.failed()).await.unwrap();
    assert!(failure.to_string().contains("watermark"), "{failure}");
}

#[tokio::test]
async fn numbers_on_the_disk_that_cannot_be_true_are_damage() {
    for (vote, last) in [(u64::MAX, 1), ((1 << 48) + 1, 1), (1, u64::MAX - 1), (1, (1 << 48) + 1)] {
        let folder = tempfile::tempdir().unwrap();
        let mut storage = open(folder.path());
        storage.log.save_vote(&Vote::new(vote, 1)).await.unwrap();
        append(&mut storage.log, [entry(last, 0)]).await.unwrap();
        drop(storage);
        let error = quorate::storage::open(config(folder.path()), &SystemRandom).err().expect("an error");
        assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("cannot be true"), "{error}");
        assert!(error.to_string().contains("move the data directory away"), "{error}");
    }
}
