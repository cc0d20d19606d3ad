//! The snapshots of this node: which is the newest, and how a finished one gets its name.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{Stream, stream};
use parking_lot::Mutex;
use tracing::warn;
use uuid::Uuid;

use super::super::blocking::Blocking;
use super::super::data_dir::DataDir;
use super::super::error::StorageError;
use super::super::files;
use super::file::{Header, MAGIC, SnapshotFile, THING, read, read_chunk, read_content, write};
use super::incoming::{IncomingSnapshot, ReceivedSnapshot};
use super::temporary::TemporaryFile;
use crate::codec::CodecError;
use crate::domain::{Counters, Lease, RoomId, Rooms};
use crate::raft_types::SnapshotMeta;

/// The snapshots of this node. Clones share them.
#[derive(Clone)]
pub struct SnapshotStore {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
    current: Mutex<Option<SnapshotFile>>,
    temporary_files: AtomicU64,
    dir: Arc<DataDir>,
}

impl SnapshotStore {
    /// Reads every snapshot that is there. A damaged one is passed over: an older one, or the log, may do.
    pub(in crate::storage) fn open(dir: Arc<DataDir>) -> Result<SnapshotStore, StorageError> {
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
        let inner = Inner { folder, current: Mutex::new(current), temporary_files: AtomicU64::new(0), dir };
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
        let temporary = self.temporary_file();
        let header =
            Header { magic: MAGIC.into(), cluster_id, meta: meta.clone(), counters, leases: leases.len() as u64 };
        let file = write(&temporary.path, &header, leases).map_err(|error| match error {
            CodecError::Io(error) => StorageError::io(THING, "write", &temporary.path)(error),
            source => StorageError::Encode { thing: THING, source },
        })?;
        self.flush(&temporary, &file)?;
        let bytes = file.metadata().map_err(StorageError::io(THING, "write", &temporary.path))?.len();
        self.publish(&temporary, SnapshotFile { path: temporary.path.clone(), cluster_id, meta: meta.clone(), bytes })
    }

    /// A file for a snapshot that is on its way here.
    pub async fn begin_incoming(&self) -> io::Result<IncomingSnapshot> {
        IncomingSnapshot::begin(self.temporary_file(), self.blocking()).await
    }

    /// The bytes of a snapshot, for a peer.
    pub async fn read_chunks(
        &self,
        snapshot: &SnapshotFile,
    ) -> io::Result<impl Stream<Item = io::Result<Vec<u8>>> + use<>> {
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
    fn temporary_file(&self) -> TemporaryFile {
        let number = self.inner.temporary_files.fetch_add(1, Ordering::Relaxed);
        TemporaryFile { path: self.inner.folder.join(format!("incoming-{number}.tmp")) }
    }

    fn flush(&self, temporary: &TemporaryFile, file: &File) -> Result<(), StorageError> {
        self.inner.dir.disk().sync_file(&temporary.path, file).map_err(StorageError::io(
            THING,
            "flush",
            &temporary.path,
        ))
    }

    /// Takes over a snapshot that was received.
    pub fn adopt(&self, received: &ReceivedSnapshot) -> Result<SnapshotFile, StorageError> {
        self.flush(&received.incoming.temporary, &received.incoming.file)?;
        self.publish(&received.incoming.temporary, received.description.clone())
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
    fn publish(&self, temporary: &TemporaryFile, mut snapshot: SnapshotFile) -> Result<SnapshotFile, StorageError> {
        let mut current = self.inner.current.lock();
        if let Some(newer) = current.as_ref().filter(|current| current.is_newer_than(&snapshot)) {
            return Ok(newer.clone());
        }
        let (index, raft_term) = snapshot.position();
        snapshot.path = self.inner.folder.join(format!("{index}-{raft_term}.snapshot"));
        files::rename(THING, &temporary.path, &snapshot.path, self.inner.dir.disk())?;
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

#[cfg(test)]
mod tests;
