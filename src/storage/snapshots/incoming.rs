//! A snapshot from a peer, while it arrives and until it is adopted.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use super::super::blocking::Blocking;
use super::super::error::StorageError;
use super::super::files;
use super::file::{SnapshotFile, THING, read};
use super::temporary::TemporaryFile;
use crate::domain::Rooms;

/// A snapshot that is arriving. Its file is removed if this is dropped.
#[derive(Debug)]
pub struct IncomingSnapshot {
    pub(super) temporary: TemporaryFile,
    pub(super) file: Arc<File>,
    bytes: u64,
    blocking: Blocking,
}

impl IncomingSnapshot {
    /// Creates an empty file at this path, without a store.
    #[cfg(test)]
    pub(crate) async fn create(path: std::path::PathBuf, blocking: Blocking) -> io::Result<IncomingSnapshot> {
        IncomingSnapshot::begin(TemporaryFile { path }, blocking).await
    }

    /// Creates the temporary file, which is empty.
    pub(super) async fn begin(temporary: TemporaryFile, blocking: Blocking) -> io::Result<IncomingSnapshot> {
        let created = temporary.path.clone();
        let file = blocking.run(move || files::create_file(&created)).await?;
        Ok(IncomingSnapshot { temporary, file: Arc::new(file), bytes: 0, blocking })
    }

    /// Appends bytes that have arrived.
    pub async fn write(&mut self, chunk: Vec<u8>) -> io::Result<()> {
        self.bytes += chunk.len() as u64;
        let file = self.file.clone();
        self.blocking.run(move || (&*file).write_all(&chunk)).await
    }

    /// How many bytes have arrived.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the file and checks that it is a whole snapshot.
    pub async fn verify(self) -> Result<ReceivedSnapshot, StorageError> {
        let (blocking, path) = (self.blocking, self.temporary.path.clone());
        let verify = move || {
            Ok(read(&self.temporary.path).map(|(description, rooms)| ReceivedSnapshot {
                incoming: self,
                description,
                rooms,
            }))
        };
        blocking.run(verify).await.unwrap_or_else(|error| Err(StorageError::io(THING, "read", &path)(error)))
    }
}

/// A whole snapshot from a peer. openraft may not want it: if this is dropped before the snapshot is adopted, its file
/// is removed.
#[derive(Debug)]
pub struct ReceivedSnapshot {
    pub(super) incoming: IncomingSnapshot,
    pub(super) description: SnapshotFile,
    rooms: Rooms,
}

impl ReceivedSnapshot {
    /// Which cluster and entries it covers, and its size.
    pub fn description(&self) -> &SnapshotFile {
        &self.description
    }

    /// The replicated state that it contains.
    pub fn rooms(&self) -> &Rooms {
        &self.rooms
    }
}
