//! Files of a newer version. An operator who goes back to the version before must not be told that the data is damaged.
//! The start must also leave every file as it is, because the newer version needs them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use openraft::storage::RaftLogStorage;
use quorate::codec;
use quorate::raft_types::Vote;
use quorate::random::SystemRandom;
use quorate::storage::{StorageConfig, StorageError};
use sha2::{Digest, Sha256};

use crate::storage_fixtures::{
    append, change, config, copy_tree, entry, log_id, room, state, try_open, write_snapshot,
};

const HEAD_BYTES: usize = 9;
const CHECKSUM_BYTES: usize = 4;
const SNAPSHOT: &str = "snapshots/6-1.snapshot";

/// A directory with a file of every kind, written by this version. The log has several files.
async fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let config = StorageConfig { log_chunk_bytes: 900, ..config(dir.path()) };
    let mut storage = quorate::storage::open(config, &SystemRandom).unwrap();
    storage.log.save_vote(&Vote::new_committed(1, 1)).await.unwrap();
    append(&mut storage.log, (0..20).map(|index| entry(1, index))).await.unwrap();
    storage.log.save_committed(Some(log_id(1, 18))).await.unwrap();
    append(&mut storage.log, [entry(1, 20)]).await.unwrap();
    write_snapshot(&storage.snapshots, 3, log_id(1, 6));
    let (rooms, meta) = state(5, log_id(1, 10));
    storage.state.replace_all(&rooms, &meta).unwrap();
    storage.state.durable_flush().unwrap();
    drop(storage);
    // The second start makes sled write its own snapshot, so that a further start changes none of its files.
    drop(try_open(dir.path()).unwrap());
    dir
}

/// Changes the format of a frame to the next one, and corrects the checksum.
fn raise(frame: &mut [u8]) {
    frame[0] = codec::FORMAT + 1;
    let checksum = crc32fast::hash(&frame[..5]);
    frame[5..HEAD_BYTES].copy_from_slice(&checksum.to_be_bytes());
}

/// Corrects the checksum of a frame whose payload was changed.
fn seal(frame: &mut [u8]) {
    let end = frame.len() - CHECKSUM_BYTES;
    let checksum = crc32fast::hash(&frame[HEAD_BYTES..end]);
    frame[end..].copy_from_slice(&checksum.to_be_bytes());
}

/// The file of the log that has this entry, and the place of its frame.
fn find_entry(dir: &Path, index: u64) -> (PathBuf, std::ops::Range<usize>) {
    let frame = codec::encode(&entry(1, index).payload).unwrap();
    fs::read_dir(dir.join("log"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .find_map(|path| {
            let start = fs::read(&path).unwrap().windows(frame.len()).position(|bytes| bytes == frame)?;
            Some((path, start..start + frame.len()))
        })
        .unwrap()
}

fn raise_entry(dir: &Path, index: u64) {
    let (path, frame) = find_entry(dir, index);
    change(&path, |bytes| {
        raise(&mut bytes[frame.clone()]);
        // The record: its type, the id of the entry, the frame, and a checksum of them all.
        let checksum = u64::from(crc32fast::hash(&bytes[frame.start - 4 - 16..frame.end]));
        bytes[frame.end..frame.end + 8].copy_from_slice(&checksum.to_be_bytes());
    });
}

/// Changes a snapshot, and corrects its digest.
fn change_snapshot(dir: &Path, edit: impl FnOnce(&mut [u8])) {
    change(&dir.join(SNAPSHOT), |bytes| {
        let end = bytes.len() - 32;
        edit(&mut bytes[..end]);
        let digest = Sha256::digest(&bytes[..end]);
        bytes[end..].copy_from_slice(&digest);
    });
}

/// The first frame: its head says how long it is.
fn first_frame(bytes: &mut [u8]) -> &mut [u8] {
    let payload_bytes = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
    &mut bytes[..HEAD_BYTES + payload_bytes + CHECKSUM_BYTES]
}

fn raise_record_of_the_database(dir: &Path, key: &[u8]) {
    let db = sled::Config::new().path(dir.join("leases")).flush_every_ms(None).open().unwrap();
    let mut value = db.get(key).unwrap().unwrap().to_vec();
    raise(&mut value);
    db.insert(key, value).unwrap();
    db.flush().unwrap();
    drop(db);
    // sled writes its own snapshot when it opens files that it has written since the last one.
    drop(sled::Config::new().path(dir.join("leases")).flush_every_ms(None).open().unwrap());
}

/// Cuts off the last record of the log, as a crash does.
fn cut_log(dir: &Path) {
    let (path, frame) = find_entry(dir, 20);
    let half = fs::read(&path).unwrap()[frame.start - 4 - 16..frame.start + 30].to_vec();
    change(&path, |bytes| bytes.extend(half));
}

type Change = Box<dyn Fn(&Path)>;

/// Every part of the data directory that has a format, and how to raise it.
fn newer_files() -> Vec<(&'static str, Change)> {
    let whole = |name: &'static str| -> Change { Box::new(move |dir| change(&dir.join(name), |bytes| raise(bytes))) };
    let log_format: Change = Box::new(|dir| {
        change(&dir.join("watermark"), |bytes| {
            bytes[HEAD_BYTES] = 2;
            seal(bytes);
        });
    });
    let meta = |dir: &Path| raise_record_of_the_database(dir, b"m");
    vec![
        ("the identity", whole("identity")),
        ("the watermark", whole("watermark")),
        ("the log's own format, which covers votes and ids", log_format),
        ("an entry in the first file of the log", Box::new(|dir| raise_entry(dir, 0))),
        ("an entry in the last file of the log", Box::new(|dir| raise_entry(dir, 20))),
        ("the header of a snapshot", Box::new(|dir| change_snapshot(dir, raise))),
        (
            "a lease in a snapshot",
            Box::new(|dir| {
                change_snapshot(dir, |bytes| {
                    let header_bytes = first_frame(bytes).len();
                    raise(&mut bytes[header_bytes..]);
                });
            }),
        ),
        (
            "the layout of a snapshot",
            Box::new(|dir| {
                change_snapshot(dir, |bytes| {
                    let header = first_frame(bytes);
                    let name = b"quorate snapshot 1";
                    let start = header.windows(name.len()).position(|found| found == name).unwrap();
                    header[start + name.len() - 1] = b'2';
                    seal(header);
                });
            }),
        ),
        ("the meta record of the lease database", Box::new(meta)),
        (
            "a lease in the lease database",
            Box::new(|dir| raise_record_of_the_database(dir, format!("l{}", room(2).as_str()).as_bytes())),
        ),
        (
            "the lease database beside a log that a crash cut off",
            Box::new(move |dir| {
                meta(dir);
                cut_log(dir);
            }),
        ),
        (
            "an entry in a log that a crash cut off",
            Box::new(|dir| {
                raise_entry(dir, 0);
                cut_log(dir);
            }),
        ),
        (
            "a snapshot beside one that a crash cut off",
            Box::new(|dir| {
                change_snapshot(dir, raise);
                fs::write(dir.join("snapshots/incoming-0.tmp"), "half a snapshot").unwrap();
            }),
        ),
    ]
}

/// Every file with its bytes.
fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(content(&path));
        } else {
            files.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    files
}

#[tokio::test]
async fn a_newer_file_is_reported_as_newer_and_nothing_is_changed() {
    let intact = directory().await;
    let mut failures = Vec::new();
    for (name, make_newer) in newer_files() {
        let dir = tempfile::tempdir().unwrap();
        copy_tree(intact.path(), dir.path());
        fs::copy(intact.path().join("reserve"), dir.path().join("reserve")).unwrap();
        make_newer(dir.path());
        let before = content(dir.path());
        match try_open(dir.path()) {
            Ok(_) => failures.push(format!("{name}: it was opened")),
            Err(error @ StorageError::Newer { .. }) => {
                let text = error.to_string();
                let parts = [
                    "format 2",
                    "only format 1",
                    "start the newer version again",
                    "restore a backup made by this version",
                ];
                if !parts.iter().all(|part| text.contains(part)) {
                    failures.push(format!("{name}: {text}"));
                }
            }
            Err(error) => failures.push(format!("{name}: {error}")),
        }
        let after = content(dir.path());
        let changed = |path: &&PathBuf| before.get(*path) != after.get(*path);
        let changed: Vec<_> = before.keys().chain(after.keys()).filter(changed).collect();
        if !changed.is_empty() {
            failures.push(format!("{name}: these files have changed: {changed:?}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// A wrong checksum is damage, whatever the format byte says.
#[tokio::test]
async fn a_damaged_format_byte_is_damage() {
    let intact = directory().await;
    let damages: [fn(&Path); 4] = [
        |dir| change(&dir.join("identity"), |bytes| bytes[0] = 2),
        |dir| change(&dir.join("watermark"), |bytes| bytes[0] = 2),
        |dir| change(&dir.join("watermark"), |bytes| bytes[HEAD_BYTES] = 2),
        |dir| {
            let (path, frame) = find_entry(dir, 0);
            change(&path, |bytes| bytes[frame.start] = 2);
        },
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        copy_tree(intact.path(), dir.path());
        damage(dir.path());
        match try_open(dir.path()) {
            Err(StorageError::Damaged { .. }) => {}
            Err(error) => panic!("{number}: {error}"),
            Ok(_) => panic!("{number}: it was opened"),
        }
    }
}
