//! Entries, leases and stores for the tests of the storage.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use openraft::{Membership, RaftLogReader};
use quorate::domain::{
    Campaign, Command, ContenderId, Counters, FencingToken, Lease, LeaseDuration, LogTime, Nonce, RoomId, Rooms,
    SecretHash, Stamp,
};
use quorate::raft_types::{Entry, EntryPayload, LogId, Node, SnapshotMeta, StoredMembership, TypeConfig};
use quorate::random::SystemRandom;
use quorate::storage::{Disk, LogStore, SnapshotFile, SnapshotStore, StateMeta, Storage, StorageConfig, StorageError};

pub fn config(dir: &Path) -> StorageConfig {
    StorageConfig::new(dir, "node-a")
}

pub fn open(dir: &Path) -> Storage {
    try_open(dir).unwrap()
}

pub fn try_open(dir: &Path) -> Result<Storage, StorageError> {
    quorate::storage::open(config(dir), &SystemRandom)
}

pub fn log_id(raft_term: u64, index: u64) -> LogId {
    LogId { leader_id: raft_term.into(), index }
}

pub fn room(number: u64) -> RoomId {
    RoomId::new(&format!("room-{number:06}")).unwrap()
}

pub fn campaign(number: u64) -> Campaign {
    Campaign {
        room: room(number),
        contender: ContenderId::new("host:1").unwrap(),
        metadata: None,
        lease_duration: LeaseDuration::from_secs(30).unwrap(),
        secret_hash: SecretHash([7; 32]),
        nonce: Nonce([9; 16]),
    }
}

pub fn lease(number: u64) -> Lease {
    Lease::grant(&campaign(number), FencingToken(1_000 + number), LogTime(number))
}

pub fn entry(raft_term: u64, index: u64) -> Entry {
    let stamp = Stamp { log_time: LogTime(index), raft_term };
    let command = Command::Campaign { stamp, campaign: campaign(index), live_leases_max: 100 };
    Entry::new(log_id(raft_term, index), EntryPayload::Normal(command))
}

/// Appends entries, and returns when the log has acknowledged them.
pub async fn append(log: &mut LogStore, entries: impl IntoIterator<Item = Entry> + Send) -> io::Result<()> {
    let (answer, answered) = TypeConfig::oneshot();
    log.append(entries.into_iter().collect::<Vec<_>>(), IOFlushed::signal(answer)).await?;
    answered.await.unwrap()
}

pub async fn read_all(log: &mut LogStore) -> Vec<Entry> {
    log.try_get_log_entries(0..u64::MAX).await.unwrap()
}

/// The state after this many grants, applied up to this entry.
pub fn state(leases: u64, applied: LogId) -> (Rooms, StateMeta) {
    let counters = Counters {
        log_time: LogTime(leases),
        last_fencing_token: 1_000 + leases,
        wall_anchor: None,
        floor_raft_term: 1,
    };
    let rooms = Rooms::restore(counters, (0..leases).map(|number| (room(number), lease(number))));
    let meta = StateMeta { counters, applied: Some(applied), membership: membership(), digest: rooms.digest() };
    (rooms, meta)
}

pub fn membership() -> StoredMembership {
    let node = |name: &str| Node { name: name.into(), peer_address: format!("{name}:1"), client_url: String::new() };
    let nodes = BTreeMap::from([(1, node("a")), (2, node("b")), (3, node("c"))]);
    StoredMembership::new(Some(log_id(1, 0)), Membership::new(vec![BTreeSet::from([1, 2, 3])], nodes).unwrap())
}

pub fn snapshot_meta(applied: LogId) -> SnapshotMeta {
    SnapshotMeta { last_log_id: Some(applied), last_membership: membership() }
}

/// Writes a snapshot with this many leases that covers the log up to `applied`.
pub fn write_snapshot(snapshots: &SnapshotStore, leases: u64, applied: LogId) -> SnapshotFile {
    let leases: Vec<_> = (0..leases).map(|number| (room(number), lease(number))).collect();
    let counters = Counters {
        log_time: LogTime(leases.len() as u64),
        last_fencing_token: 1_000 + leases.len() as u64,
        wall_anchor: None,
        floor_raft_term: 1,
    };
    snapshots.write(None, &snapshot_meta(applied), counters, leases.into_iter()).unwrap()
}

/// Copies a data directory without its `reserve` file, which only keeps disk space back.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else if entry.file_name() != "reserve" {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// Changes the bytes of a file.
pub fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// A disk that skips every flush. Once `fails` is set, each `sync_file` fails. The log is not flushed by `sync_file`.
#[derive(Debug, Default)]
pub struct UnflushedDisk {
    pub fails: AtomicBool,
}

impl Disk for UnflushedDisk {
    fn sync_file(&self, _path: &Path, _file: &File) -> io::Result<()> {
        if self.fails.load(Ordering::Relaxed) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_tree(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn log_syncs_itself(&self) -> bool {
        false
    }
}
