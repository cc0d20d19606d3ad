//! Snapshots: one file each, which is also what a peer is sent and what a backup is.
//!
//! ```text
//! <index>-<raft term>.snapshot = header frame | one frame per lease, in room order | SHA-256 of all before
//! ```
//!
//! A file of that name is complete: it is written or received under another one, flushed, and renamed. Only then
//! may openraft hear of it, because it purges the log that the snapshot stands for.
//!
//! All functions here block, for as long as it takes to read or write the whole state.

mod incoming;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{Stream, stream};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tracing::warn;
use uuid::Uuid;

use incoming::Aside;
pub use incoming::{IncomingSnapshot, ReceivedSnapshot};

use super::data_dir::DataDir;
use super::disk::Blocking;
use super::{StorageError, files};
use crate::codec::{self, CodecError};
use crate::domain::{Counters, Lease, RoomId, Rooms};
use crate::raft_types::SnapshotMeta;

const THING: &str = "snapshot";
const MAGIC: &str = "quorate snapshot 1";
const DIGEST_BYTES: u64 = 32;

/// A complete snapshot on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Where it is. A newer snapshot removes it; who holds the file open can still read it.
    pub path: PathBuf,
    /// The cluster that it is of.
    pub cluster_id: Option<Uuid>,
    /// What it covers.
    pub meta: SnapshotMeta,
    /// Its size.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    magic: String,
    cluster_id: Option<Uuid>,
    meta: SnapshotMeta,
    counters: Counters,
    leases: u64,
}

/// The snapshots of this node. Clones share them.
#[derive(Clone)]
pub struct SnapshotStore {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
    current: Mutex<Option<SnapshotFile>>,
    received: AtomicU64,
    dir: Arc<DataDir>,
}

impl SnapshotStore {
    /// Reads every snapshot that is there. A damaged one is passed over: an older one, or the log, may do.
    pub(super) fn open(dir: Arc<DataDir>) -> Result<SnapshotStore, StorageError> {
        let folder = dir.folder(THING, "snapshots")?;
        let mut current: Option<SnapshotFile> = None;
        for name in files::names_in(THING, &folder)? {
            let path = folder.join(&name);
            if name.ends_with(".tmp") {
                std::fs::remove_file(&path).map_err(StorageError::io(THING, "clean up", &path))?;
            } else if name.ends_with(".snapshot") {
                match read(&path) {
                    Ok((found, _)) if current.as_ref().is_none_or(|best| found.is_newer_than(best)) => {
                        current = Some(found);
                    }
                    Ok(_) => {}
                    Err(error @ StorageError::Damaged { .. }) => {
                        warn!(%error, "passing over a damaged snapshot");
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let inner = Inner { folder, current: Mutex::new(current), received: AtomicU64::new(0), dir };
        Ok(SnapshotStore { inner: Arc::new(inner) })
    }

    /// The newest snapshot. It was read whole when the store was opened, or written since.
    pub fn current(&self) -> Option<SnapshotFile> {
        self.inner.current.lock().clone()
    }

    /// Writes a snapshot, and removes older ones. The leases come ordered by room.
    pub fn write(
        &self,
        cluster_id: Option<Uuid>,
        meta: &SnapshotMeta,
        counters: Counters,
        leases: impl ExactSizeIterator<Item = (RoomId, Lease)>,
    ) -> Result<SnapshotFile, StorageError> {
        let aside = self.aside();
        let header =
            Header { magic: MAGIC.into(), cluster_id, meta: meta.clone(), counters, leases: leases.len() as u64 };
        let file = write(&aside.path, &header, leases).map_err(|error| match error {
            CodecError::Io(error) => StorageError::io(THING, "write", &aside.path)(error),
            source => StorageError::Encode { thing: THING, source },
        })?;
        self.flush(&aside, &file)?;
        let bytes = file.metadata().map_err(StorageError::io(THING, "write", &aside.path))?.len();
        self.publish(&aside, SnapshotFile { path: aside.path.clone(), cluster_id, meta: meta.clone(), bytes })
    }

    /// A file for a snapshot that is on its way here.
    pub async fn receive(&self) -> io::Result<IncomingSnapshot> {
        IncomingSnapshot::begin(self.aside(), self.blocking()).await
    }

    /// The bytes of a snapshot, for a peer.
    pub async fn send(&self, snapshot: &SnapshotFile) -> io::Result<impl Stream<Item = io::Result<Vec<u8>>> + use<>> {
        let (path, blocking) = (snapshot.path.clone(), self.blocking());
        let file = Arc::new(blocking.run(move || File::open(path)).await?);
        Ok(stream::try_unfold(file, move |file| async move {
            let from = file.clone();
            let chunk = blocking.run(move || read_chunk(&from)).await?;
            Ok((!chunk.is_empty()).then_some((chunk, file)))
        }))
    }

    /// Where work on snapshots is done, since all of it blocks.
    pub fn blocking(&self) -> Blocking {
        self.inner.dir.disk().blocking()
    }

    /// Where a snapshot is until it is complete.
    fn aside(&self) -> Aside {
        let number = self.inner.received.fetch_add(1, Ordering::Relaxed);
        Aside { path: self.inner.folder.join(format!("incoming-{number}.tmp")) }
    }

    fn flush(&self, aside: &Aside, file: &File) -> Result<(), StorageError> {
        self.inner.dir.disk().sync_file(&aside.path, file).map_err(StorageError::io(THING, "flush", &aside.path))
    }

    /// Takes over a snapshot that was received.
    pub fn adopt(&self, received: &ReceivedSnapshot) -> Result<SnapshotFile, StorageError> {
        self.flush(&received.incoming.aside, &received.incoming.file)?;
        self.publish(&received.incoming.aside, received.description.clone())
    }

    /// Whether the newest snapshot can still be read as it was written.
    pub fn check_current(&self) -> Result<(), StorageError> {
        let Some(current) = self.current() else { return Ok(()) };
        let checked = read_content(&current.path).map(|_| ());
        // One that was replaced meanwhile says nothing about its successor.
        if self.current().as_ref() == Some(&current) { checked } else { Ok(()) }
    }

    /// The state in a snapshot.
    pub fn load(&self, snapshot: &SnapshotFile) -> Result<(SnapshotMeta, Rooms), StorageError> {
        let (found, rooms) = read(&snapshot.path)?;
        Ok((found.meta, rooms))
    }

    /// Gives a complete, flushed file its name, unless there is a newer one by now: the one who builds snapshots can
    /// be slower than the one who receives them. Says what there is from then on. The lock is held all the while, so
    /// that two who finish at once do not remove each other's.
    fn publish(&self, aside: &Aside, mut snapshot: SnapshotFile) -> Result<SnapshotFile, StorageError> {
        let mut current = self.inner.current.lock();
        if let Some(newer) = current.as_ref().filter(|current| current.is_newer_than(&snapshot)) {
            return Ok(newer.clone());
        }
        let (index, raft_term) = snapshot.position();
        snapshot.path = self.inner.folder.join(format!("{index}-{raft_term}.snapshot"));
        files::rename(THING, &aside.path, &snapshot.path, self.inner.dir.disk())?;
        *current = Some(snapshot.clone());
        self.remove_older(&snapshot);
        Ok(snapshot)
    }

    /// Frees the space of older snapshots, damaged ones among them. One that stays costs space, nothing else.
    fn remove_older(&self, kept: &SnapshotFile) {
        let (index, raft_term) = kept.position();
        for name in files::names_in(THING, &self.inner.folder).unwrap_or_default() {
            if position_in(&name).is_none_or(|(other, other_term)| (other_term, other) >= (raft_term, index)) {
                continue;
            }
            let path = self.inner.folder.join(name);
            if let Err(error) = std::fs::remove_file(&path) {
                warn!(path = %path.display(), %error, "an old snapshot could not be removed");
            }
        }
    }
}

/// The index and the raft term in the name of a snapshot.
fn position_in(name: &str) -> Option<(u64, u64)> {
    let (index, raft_term) = name.strip_suffix(".snapshot")?.split_once('-')?;
    Some((index.parse().ok()?, raft_term.parse().ok()?))
}

impl SnapshotFile {
    fn is_newer_than(&self, other: &SnapshotFile) -> bool {
        self.meta.last_log_id > other.meta.last_log_id
    }

    /// The index and the raft term of the last entry that it covers.
    fn position(&self) -> (u64, u64) {
        self.meta.last_log_id.map_or((0, 0), |id| (id.index, id.leader_id.term))
    }
}

fn write(path: &Path, header: &Header, leases: impl Iterator<Item = (RoomId, Lease)>) -> Result<File, CodecError> {
    let mut hashing = Hashing { inner: BufWriter::new(files::create_file(path)?), hash: Sha256::new() };
    codec::write_to(header, &mut hashing)?;
    let mut written = 0;
    for lease in leases {
        codec::write_to(&lease, &mut hashing)?;
        written += 1;
    }
    assert_eq!(written, header.leases, "an iterator of exact size gives as many leases as it said");
    let digest = hashing.hash.finalize();
    hashing.inner.write_all(&digest)?;
    Ok(hashing.inner.into_inner().map_err(io::IntoInnerError::into_error)?)
}

/// Reads a snapshot whole, and believes it only then.
fn read(path: &Path) -> Result<(SnapshotFile, Rooms), StorageError> {
    let (snapshot, counters, leases) = read_content(path)?;
    Ok((snapshot, Rooms::restore(counters, leases)))
}

type Content = (SnapshotFile, Counters, Vec<(RoomId, Lease)>);

fn read_content(path: &Path) -> Result<Content, StorageError> {
    let damaged = |why: &str| StorageError::damaged(THING, path, why);
    let (file, bytes) = open(path)?;
    let content = BufReader::new(file).take(bytes.saturating_sub(DIGEST_BYTES));
    let mut hashing = Hashing { inner: content, hash: Sha256::new() };
    let header = read_header(&mut hashing, path)?;
    let mut leases: Vec<(RoomId, Lease)> = Vec::new();
    for _ in 0..header.leases {
        let lease: (RoomId, Lease) = codec::read_from(&mut hashing).map_err(StorageError::decode(THING, path))?;
        if leases.last().is_some_and(|(before, _)| *before >= lease.0) {
            return Err(damaged("its rooms are not in order"));
        }
        leases.push(lease);
    }
    if hashing.inner.limit() > 0 {
        return Err(damaged("it goes on after its last lease"));
    }
    let mut digest = [0; DIGEST_BYTES as usize];
    hashing.inner.into_inner().read_exact(&mut digest).map_err(StorageError::io(THING, "read", path))?;
    if *hashing.hash.finalize() != digest {
        return Err(damaged("its SHA-256 does not match"));
    }
    let snapshot = SnapshotFile { path: path.to_owned(), cluster_id: header.cluster_id, meta: header.meta, bytes };
    Ok((snapshot, header.counters, leases))
}

fn open(path: &Path) -> Result<(File, u64), StorageError> {
    File::open(path)
        .and_then(|file| {
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        })
        .map_err(StorageError::io(THING, "open", path))
}

fn read_header(reader: &mut impl Read, path: &Path) -> Result<Header, StorageError> {
    let header: Header = codec::read_from(reader).map_err(StorageError::decode(THING, path))?;
    if header.magic == MAGIC { Ok(header) } else { Err(StorageError::damaged(THING, path, "it is of another kind")) }
}

/// How much of a snapshot is read or sent at a time.
const CHUNK_BYTES: usize = 64 << 10;

fn read_chunk(mut file: &File) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let read = file.read(&mut chunk)?;
    chunk.truncate(read);
    Ok(chunk)
}

/// Passes bytes through and hashes them on the way.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.hash.update(&bytes[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod fuzz_tests;

#[cfg(test)]
mod tests;
