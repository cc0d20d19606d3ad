//! The snapshots of this node: finds the newest at the start, adds new ones, removes older ones.

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
use super::file::{Header, SnapshotFile, THING, read, read_chunk, read_content, write};
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
    /// Reads every snapshot in the folder. A damaged one is skipped, because an older one or the log may be enough.
    /// No file is changed.
    pub(in crate::storage) fn open(dir: Arc<DataDir>) -> Result<SnapshotStore, StorageError> {
        let folder = dir.folder(THING, "snapshots")?;
        let mut current: Option<SnapshotFile> = None;
        for name in files::names_in(THING, &folder)? {
            let path = folder.join(&name);
            if name.ends_with(".snapshot") {
                match read(&path) {
                    Ok((found, _)) if current.as_ref().is_none_or(|best| found.is_newer_than(best)) => {
                        current = Some(found);
                    }
                    Ok(_) => {}
                    // The error's own text is left out, because it tells the operator to give up the data directory.
                    Err(StorageError::Damaged { path, why, .. }) => {
                        warn!(path = %path.display(), why, "a damaged snapshot is skipped");
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let inner = Inner { folder, current: Mutex::new(current), temporary_files: AtomicU64::new(0), dir };
        Ok(SnapshotStore { inner: Arc::new(inner) })
    }

    /// Removes the snapshots that were not complete when the process ended.
    pub(in crate::storage) fn remove_incomplete(&self) -> Result<(), StorageError> {
        for name in files::names_in(THING, &self.inner.folder)?.iter().filter(|name| name.ends_with(".tmp")) {
            let path = self.inner.folder.join(name);
            std::fs::remove_file(&path).map_err(StorageError::io(THING, "clean up", &path))?;
        }
        Ok(())
    }

    /// The newest snapshot. Its content was checked at the start or on arrival, or this node wrote it itself.
    pub fn current(&self) -> Option<SnapshotFile> {
        self.inner.current.lock().clone()
    }

    /// Writes a snapshot, and removes older ones. The leases must be in ascending order of their rooms.
    ///
    /// Returns the newest snapshot. If a newer one was received during the write, that one is returned.
    pub fn write(
        &self,
        cluster_id: Option<Uuid>,
        meta: &SnapshotMeta,
        counters: Counters,
        leases: impl ExactSizeIterator<Item = (RoomId, Lease)>,
    ) -> Result<SnapshotFile, StorageError> {
        let temporary = self.temporary_file();
        let header = Header::new(cluster_id, meta.clone(), counters, leases.len() as u64);
        let file = write(&temporary.path, &header, leases).map_err(|error| match error {
            CodecError::Io(error) => StorageError::io(THING, "write", &temporary.path)(error),
            source => StorageError::Encode { thing: THING, source },
        })?;
        self.flush(&temporary, &file)?;
        let bytes = file.metadata().map_err(StorageError::io(THING, "write", &temporary.path))?.len();
        self.publish(&temporary, SnapshotFile { path: temporary.path.clone(), cluster_id, meta: meta.clone(), bytes })
    }

    /// Creates an empty file for a snapshot from a peer.
    pub async fn begin_incoming(&self) -> io::Result<IncomingSnapshot> {
        IncomingSnapshot::begin(self.temporary_file(), self.blocking()).await
    }

    /// Reads the bytes of a snapshot, to send them to a peer.
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

    /// Where the blocking work on snapshots runs.
    pub fn blocking(&self) -> Blocking {
        self.inner.dir.disk().blocking()
    }

    /// A new name for a snapshot that is not complete yet.
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

    /// Flushes and publishes a snapshot from a peer. Returns the newest snapshot.
    pub fn adopt(&self, received: &ReceivedSnapshot) -> Result<SnapshotFile, StorageError> {
        self.flush(&received.incoming.temporary, &received.incoming.file)?;
        self.publish(&received.incoming.temporary, received.description.clone())
    }

    /// Reads the newest snapshot, and fails if it is damaged.
    pub fn check_current(&self) -> Result<(), StorageError> {
        let Some(current) = self.current() else { return Ok(()) };
        let checked = read_content(&current.path).map(|_| ());
        // If the snapshot was replaced during the check, the result says nothing about the new one.
        if self.current().as_ref() == Some(&current) { checked } else { Ok(()) }
    }

    /// Reads the state in a snapshot.
    pub fn load(&self, snapshot: &SnapshotFile) -> Result<(SnapshotMeta, Rooms), StorageError> {
        let (found, rooms) = read(&snapshot.path)?;
        Ok((found.meta, rooms))
    }

    /// Renames a complete, flushed file to its final name, and returns the newest snapshot.
    ///
    /// If there is a newer snapshot by now, the file is not published: building one can take longer than receiving one.
    /// The lock is held until the end, so that two snapshots that finish at once don't remove each other.
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

    /// Removes older snapshots, including damaged ones. If that fails, they only take space.
    fn remove_older(&self, kept: &SnapshotFile) {
        let (index, raft_term) = kept.position();
        for name in files::names_in(THING, &self.inner.folder).unwrap_or_default() {
            if position_in(&name).is_none_or(|(other, other_term)| (other_term, other) >= (raft_term, index)) {
                continue;
            }
            let path = self.inner.folder.join(name);
            if let Err(error) = std::fs::remove_file(&path) {
                warn!(
                    path = %path.display(), %error,
                    "an old snapshot could not be removed; it only takes space, and the next snapshot tries again"
                );
            }
        }
    }
}

/// Index and raft term in the name of a snapshot.
fn position_in(name: &str) -> Option<(u64, u64)> {
    let (index, raft_term) = name.strip_suffix(".snapshot")?.split_once('-')?;
    Some((index.parse().ok()?, raft_term.parse().ok()?))
}

#[cfg(test)]
mod tests;
