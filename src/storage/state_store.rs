//! The replicated state on disk, in sled: leases, counters and what they are the state of.
//!
//! It is a cache of the raft log and the newest snapshot, to start from without replaying everything; sled's own
//! flush isn't one (a power cut lost every record that it called flushed). So it is believed only if every byte
//! of it is right, which the digest tells, and is otherwise put aside and made anew. After the start nothing is
//! read from it.
//!
//! There is one tree, because a batch is atomic in one tree only: `m` holds the [`StateMeta`], `l` and a room
//! its lease.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracing::warn;

use super::data_dir::DataDir;
use super::error::StorageError;
use super::files;
use crate::clock;
use crate::codec;
use crate::domain::{Counters, Lease, RoomId, Rooms, StateDigest};
use crate::raft_types::{LogId, StoredMembership};

const THING: &str = "lease database";
const META_KEY: &[u8] = b"m";
const LEASE_PREFIX: u8 = b'l';

/// sled is only written to while a node runs, so its cache needs to hold no more than what is being changed.
const CACHE_BYTES: u64 = 16 << 20;

/// How many damaged databases are kept to be looked at.
const QUARANTINED_MAX: usize = 2;

/// What belongs to the leases. Every batch writes it whole, so that it always fits them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StateMeta {
    /// The state beside the leases.
    pub counters: Counters,
    /// The last entry applied.
    pub applied: Option<LogId>,
    /// The last membership applied.
    pub membership: StoredMembership,
    /// The digest of counters and leases.
    pub digest: StateDigest,
}

/// The replicated state on disk. Clones share it.
#[derive(Clone)]
pub struct StateStore {
    inner: Arc<Inner>,
}

struct Inner {
    /// Taken out only to be dropped.
    db: Option<sled::Db>,
    path: PathBuf,
    dir: Arc<DataDir>,
}

enum OpenFailure {
    Damaged(String),
    Io(io::Error),
}

impl StateStore {
    /// Opens the database and reads it whole. A damaged one is put aside, and an empty one takes its place; the
    /// state is `None` then, as it is on a new node.
    pub(super) fn open(dir: Arc<DataDir>) -> Result<(StateStore, Option<(Rooms, StateMeta)>), StorageError> {
        let path = dir.join("leases");
        remove_unfinished_snapshots(&path)?;
        let why = match open_and_read(&path) {
            Ok((db, state)) => return Ok((StateStore::of(db, path, dir), state)),
            Err(OpenFailure::Io(error)) => return Err(StorageError::io(THING, "open", &path)(error)),
            Err(OpenFailure::Damaged(why)) => why,
        };
        let aside = quarantine(&dir, &path)?;
        warn!(%why, path = %aside.display(), "the lease database is damaged and was put aside; it is made anew from snapshot and log");
        match open_and_read(&path) {
            Ok((db, state)) => Ok((StateStore::of(db, path, dir), state)),
            Err(OpenFailure::Io(error)) => Err(StorageError::io(THING, "open", &path)(error)),
            Err(OpenFailure::Damaged(why)) => Err(StorageError::damaged(THING, &path, why)),
        }
    }

    fn of(db: sled::Db, path: PathBuf, dir: Arc<DataDir>) -> StateStore {
        StateStore { inner: Arc::new(Inner { db: Some(db), path, dir }) }
    }

    /// Writes what one apply stream has changed, with the meta that fits it, at once or not at all. It is not
    /// flushed: the raft log has it.
    pub fn apply(&self, leases: &[(RoomId, Option<Lease>)], meta: &StateMeta) -> Result<(), StorageError> {
        let mut batch = sled::Batch::default();
        for (room, lease) in leases {
            match lease {
                Some(lease) => batch.insert(lease_key(room), encode("lease", lease)?),
                None => batch.remove(lease_key(room)),
            }
        }
        batch.insert(META_KEY, encode("state", meta)?);
        self.try_to("write to", |db| db.apply_batch(batch))
    }

    /// Replaces everything, at once or not at all.
    pub fn replace_all(&self, rooms: &Rooms, meta: &StateMeta) -> Result<(), StorageError> {
        let mut batch = sled::Batch::default();
        let old_keys = self.try_to("read", |db| db.iter().keys().collect::<sled::Result<Vec<_>>>())?;
        old_keys.into_iter().for_each(|key| batch.remove(key));
        for (room, lease) in rooms.leases() {
            batch.insert(lease_key(room), encode("lease", lease)?);
        }
        batch.insert(META_KEY, encode("state", meta)?);
        self.try_to("write to", |db| db.apply_batch(batch))
    }

    /// Brings everything to the disk for real. The log behind it may be purged afterwards.
    pub fn durable_flush(&self) -> Result<(), StorageError> {
        // What sled does here is sync_file_range, which leaves the disk's cache and the file's length alone.
        self.try_to("flush", |db| db.flush())?;
        let Inner { path, dir, .. } = &*self.inner;
        dir.disk().sync_tree(path).map_err(StorageError::io(THING, "flush", path))
    }

    fn try_to<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&sled::Db) -> sled::Result<T>,
    ) -> Result<T, StorageError> {
        let db = self.inner.db.as_ref().expect("the database is there until the last handle is dropped");
        unless_it_panics(|| work(db))
            .unwrap_or_else(|why| Err(sled::Error::ReportableBug(why)))
            .map_err(|source| StorageError::Database { action, path: self.inner.path.clone(), source })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let db = self.db.take();
        // sled writes what it still has, and panics if it can't. Nothing that matters is lost by that.
        if let Err(why) = unless_it_panics(|| drop(db)) {
            warn!(%why, path = %self.path.display(), "the lease database was not closed in order");
        }
    }
}

/// sled panics over a damaged file, and over some failures of the disk.
fn unless_it_panics<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let why = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        format!("sled panicked: {}", why.unwrap_or("without saying why"))
    })
}

fn lease_key(room: &RoomId) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + room.as_str().len());
    key.push(LEASE_PREFIX);
    key.extend_from_slice(room.as_str().as_bytes());
    key
}

fn encode<T: Serialize>(thing: &'static str, value: &T) -> Result<Vec<u8>, StorageError> {
    codec::encode(value).map_err(|source| StorageError::Encode { thing, source })
}

/// sled writes a snapshot of its own under such a name and then renames it. A leftover one stops it from opening
/// (spacejam/sled 1527), and is never needed.
fn remove_unfinished_snapshots(path: &Path) -> Result<(), StorageError> {
    if !path.exists() {
        return Ok(());
    }
    for name in files::names_in(THING, path)? {
        if name.starts_with("snap.") && name.ends_with(".generating") {
            let unfinished = path.join(name);
            warn!(path = %unfinished.display(), "removing a file that sled did not finish");
            std::fs::remove_file(&unfinished).map_err(StorageError::io(THING, "clean up", &unfinished))?;
        }
    }
    Ok(())
}

fn open_and_read(path: &Path) -> Result<(sled::Db, Option<(Rooms, StateMeta)>), OpenFailure> {
    let open = || {
        let config = sled::Config::new().path(path).cache_capacity(CACHE_BYTES).flush_every_ms(None);
        let db = files::take_lock(is_locked, || config.open())?;
        let state = read(&db)?;
        Ok((db, state))
    };
    unless_it_panics(open).unwrap_or_else(|why| Err(OpenFailure::Damaged(why)))
}

fn read(db: &sled::Db) -> Result<Option<(Rooms, StateMeta)>, OpenFailure> {
    let (mut meta, mut leases) = (None, Vec::new());
    for record in db.iter() {
        let (key, value) = record?;
        match key.split_first() {
            _ if *key == *META_KEY => meta = Some(codec::decode::<StateMeta>(&value)?),
            Some((&LEASE_PREFIX, room)) => leases.push((room_of(room)?, codec::decode::<Lease>(&value)?)),
            _ => return Err(OpenFailure::Damaged("it has an unknown key".into())),
        }
    }
    let Some(meta) = meta else {
        return if leases.is_empty() {
            Ok(None)
        } else {
            Err(OpenFailure::Damaged("it has leases, but not what belongs to them".into()))
        };
    };
    let rooms = Rooms::restore(meta.counters, leases);
    if rooms.digest() != meta.digest {
        return Err(OpenFailure::Damaged(format!("its digest is {}, but should be {}", rooms.digest(), meta.digest)));
    }
    Ok(Some((rooms, meta)))
}

fn room_of(bytes: &[u8]) -> Result<RoomId, OpenFailure> {
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| RoomId::new(text).ok())
        .ok_or_else(|| OpenFailure::Damaged("it has a room with an impossible name".into()))
}

/// sled has no error of its own for this.
fn is_locked(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

impl From<sled::Error> for OpenFailure {
    fn from(error: sled::Error) -> Self {
        let is_locked = is_locked(&error);
        match error {
            sled::Error::Io(error) if is_locked => OpenFailure::Io(error),
            sled::Error::Io(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::StorageFull
                        | io::ErrorKind::QuotaExceeded
                        | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                OpenFailure::Io(error)
            }
            error => OpenFailure::Damaged(error.to_string()),
        }
    }
}

impl From<codec::CodecError> for OpenFailure {
    fn from(error: codec::CodecError) -> Self {
        OpenFailure::Damaged(error.to_string())
    }
}

/// Puts a damaged database aside, and removes the oldest of those that were put aside before.
fn quarantine(dir: &DataDir, path: &Path) -> Result<PathBuf, StorageError> {
    const PREFIX: &str = "quarantine-";
    let mut times: Vec<u64> =
        files::names_in(THING, dir.path())?.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
    times.sort_unstable();
    let now = clock::wall_time_now().0;
    // Two in one millisecond, or after the clock went back, still get names in their order.
    let time = times.last().map_or(now, |last| now.max(last + 1));
    let aside = dir.join(&format!("{PREFIX}{time}"));
    files::rename(THING, path, &aside, dir.disk())?;
    times.push(time);
    for old in times.iter().rev().skip(QUARANTINED_MAX) {
        let old = dir.join(&format!("{PREFIX}{old}"));
        std::fs::remove_dir_all(&old).map_err(StorageError::io("quarantined database", "remove", &old))?;
    }
    Ok(aside)
}

#[cfg(test)]
mod fuzz_tests;
