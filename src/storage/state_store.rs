//! The replicated state on disk, in sled: leases, counters, and the log position that they belong to.
//!
//! It is a cache of the raft log and the newest snapshot, so that a start need not replay everything. sled's own flush
//! is not reliable: a power cut lost every record that it called flushed. So the state is used only if its digest shows
//! that every byte is right. Otherwise the database is moved away, and a new one is made. After the start, no state is
//! read from it.
//!
//! All records are in one tree, because a batch is atomic only within a tree. The key `m` has the [`StateMeta`], and
//! `l` followed by a room has that room's lease.

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
use crate::codec::{self, CodecError};
use crate::domain::{Counters, Lease, RoomId, Rooms, StateDigest};
use crate::raft_types::{LogId, StoredMembership};

const THING: &str = "lease database";
const META_KEY: &[u8] = b"m";
const LEASE_PREFIX: u8 = b'l';

/// A running node only writes to sled, so the cache needs to hold only what is being changed.
const CACHE_BYTES: u64 = 16 << 20;

/// How many damaged databases are kept, so that an operator can examine them.
const QUARANTINED_MAX: usize = 2;

/// Everything stored beside the leases. Each batch writes all of it, so it always fits the leases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StateMeta {
    /// The replicated state beside the leases.
    pub counters: Counters,
    /// The last entry that was applied.
    pub applied: Option<LogId>,
    /// The last membership that was applied.
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
    /// It is `None` only while this is being dropped.
    db: Option<sled::Db>,
    path: PathBuf,
    dir: Arc<DataDir>,
}

/// The database as it was found at the start.
#[expect(clippy::large_enum_variant, reason = "there is only one, during the start")]
pub(super) enum Found {
    /// It can be used. An empty database has the state `None`.
    Intact(StateStore, Option<(Rooms, StateMeta)>),
    /// It is damaged. It is still at its place.
    Damaged { dir: Arc<DataDir>, path: PathBuf, why: String },
}

enum OpenFailure {
    Damaged(String),
    Newer(CodecError),
    Io(io::Error),
}

impl StateStore {
    /// Opens the database and reads it whole. A damaged one is left where it is: it is moved away only when nothing in
    /// the data directory is of a newer version ([`Found::or_replaced`]).
    pub(super) fn open(dir: Arc<DataDir>) -> Result<Found, StorageError> {
        let path = dir.join("leases");
        remove_unfinished_snapshots(&path)?;
        match open_and_read(&path) {
            Ok((db, state)) => Ok(Found::Intact(StateStore::of(db, path, dir), state)),
            Err(OpenFailure::Io(error)) => Err(StorageError::io(THING, "open", &path)(error)),
            Err(OpenFailure::Newer(error)) => Err(StorageError::decode(THING, &path)(error)),
            Err(OpenFailure::Damaged(why)) => Ok(Found::Damaged { dir, path, why }),
        }
    }

    fn of(db: sled::Db, path: PathBuf, dir: Arc<DataDir>) -> StateStore {
        StateStore { inner: Arc::new(Inner { db: Some(db), path, dir }) }
    }

    /// Writes changed leases and the meta that fits them, all or nothing. Nothing is flushed, because the raft log has
    /// the entries.
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

    /// Replaces the whole state, all or nothing.
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

    /// Flushes everything, also through the disk's cache. The log may be purged afterwards.
    pub fn durable_flush(&self) -> Result<(), StorageError> {
        // sled calls sync_file_range here. That flushes neither the disk's cache nor the file's length.
        self.try_to("flush", |db| db.flush())?;
        let Inner { path, dir, .. } = &*self.inner;
        dir.disk().sync_tree(path).map_err(StorageError::io(THING, "flush", path))
    }

    fn try_to<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&sled::Db) -> sled::Result<T>,
    ) -> Result<T, StorageError> {
        let db = self.inner.db.as_ref().expect("the database is open until the last handle is dropped");
        unless_it_panics(|| work(db))
            .unwrap_or_else(|why| Err(sled::Error::ReportableBug(why)))
            .map_err(|source| StorageError::Database { action, path: self.inner.path.clone(), source })
    }
}

impl Found {
    /// The database and its state. If it is damaged, it is moved away and replaced by an empty one.
    pub(super) fn or_replaced(self) -> Result<(StateStore, Option<(Rooms, StateMeta)>), StorageError> {
        let (dir, path, why) = match self {
            Found::Intact(store, state) => return Ok((store, state)),
            Found::Damaged { dir, path, why } => (dir, path, why),
        };
        let moved_to = quarantine(&dir, &path)?;
        warn!(
            %why, path = %moved_to.display(),
            "the lease database was damaged and has been moved away; a new one is made from snapshot and log"
        );
        match StateStore::open(dir)? {
            Found::Intact(store, state) => Ok((store, state)),
            Found::Damaged { path, why, .. } => Err(StorageError::damaged(THING, &path, why)),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let db = self.db.take();
        // sled writes what it still has in memory, and panics if it can't. The log and the snapshot have that data too.
        if let Err(why) = unless_it_panics(|| drop(db)) {
            warn!(
                %why, path = %self.path.display(),
                "the lease database was not closed properly; nothing acknowledged is lost"
            );
        }
    }
}

/// Turns a panic into an error: sled panics if a file is damaged, and after some failures of the disk.
fn unless_it_panics<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let why = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        format!("sled panicked: {}", why.unwrap_or("without a message"))
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

/// Removes unfinished snapshots that sled made for itself. sled writes each under such a name and then renames it. If a
/// crash leaves one, sled doesn't open (spacejam/sled 1527). An unfinished one is never needed.
fn remove_unfinished_snapshots(path: &Path) -> Result<(), StorageError> {
    if !path.exists() {
        return Ok(());
    }
    for name in files::names_in(THING, path)? {
        if name.starts_with("snap.") && name.ends_with(".generating") {
            let unfinished = path.join(name);
            warn!(path = %unfinished.display(), "removing a snapshot that sled did not finish");
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
    // The meta comes first. If a newer version has other keys as well, they must not be taken for damage.
    let meta = db.get(META_KEY)?.map(|value| codec::decode::<StateMeta>(&value)).transpose()?;
    let mut leases = Vec::new();
    for record in db.iter() {
        let (key, value) = record?;
        match key.split_first() {
            _ if *key == *META_KEY => {}
            Some((&LEASE_PREFIX, room)) => leases.push((room_of(room)?, codec::decode::<Lease>(&value)?)),
            _ => return Err(OpenFailure::Damaged("it has a record with an unknown key".into())),
        }
    }
    let Some(meta) = meta else {
        return if leases.is_empty() {
            Ok(None)
        } else {
            Err(OpenFailure::Damaged("it has leases, but its meta record is missing".into()))
        };
    };
    let rooms = Rooms::restore(meta.counters, leases);
    if rooms.digest() != meta.digest {
        return Err(OpenFailure::Damaged(format!(
            "its digest is {}, but it should be {}",
            rooms.digest(),
            meta.digest
        )));
    }
    Ok(Some((rooms, meta)))
}

fn room_of(bytes: &[u8]) -> Result<RoomId, OpenFailure> {
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| RoomId::new(text).ok())
        .ok_or_else(|| OpenFailure::Damaged("it has a room with an invalid name".into()))
}

/// Whether another process has the database open. sled has no error kind for this, so its text is compared.
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

impl From<CodecError> for OpenFailure {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::Newer { .. } => OpenFailure::Newer(error),
            error => OpenFailure::Damaged(error.to_string()),
        }
    }
}

/// Moves a damaged database away. If more than [`QUARANTINED_MAX`] were moved away by now, the oldest are removed.
fn quarantine(dir: &DataDir, path: &Path) -> Result<PathBuf, StorageError> {
    const PREFIX: &str = "quarantine-";
    let mut times: Vec<u64> =
        files::names_in(THING, dir.path())?.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
    times.sort_unstable();
    let now = clock::wall_time_now().0;
    // The names stay in order, even if two fall into one millisecond, or if the clock was set back.
    let time = times.last().map_or(now, |last| now.max(last + 1));
    let moved_to = dir.join(&format!("{PREFIX}{time}"));
    files::rename(THING, path, &moved_to, dir.disk())?;
    times.push(time);
    for old in times.iter().rev().skip(QUARANTINED_MAX) {
        let old = dir.join(&format!("{PREFIX}{old}"));
        std::fs::remove_dir_all(&old).map_err(StorageError::io("quarantined database", "remove", &old))?;
    }
    Ok(moved_to)
}

#[cfg(test)]
mod fuzz_tests;
