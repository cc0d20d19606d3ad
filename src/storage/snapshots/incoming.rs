//! A snapshot from a peer, from its first byte until it is this node's own or is not wanted.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use super::super::blocking::Blocking;
use super::super::error::StorageError;
use super::super::files;
use super::file::{SnapshotFile, THING, read};
use super::temporary::TemporaryFile;
use crate::domain::Rooms;

/// A snapshot that is on its way here. It is gone if it is dropped before it is adopted.
#[derive(Debug)]
pub struct IncomingSnapshot {
    pub(super) temporary: TemporaryFile,
    pub(super) file: Arc<File>,
    bytes: u64,
    blocking: Blocking,
}

impl IncomingSnapshot {
    /// Begins with an empty file, without a store around it.
    #[cfg(test)]
    pub(crate) async fn create(path: std::path::PathBuf, blocking: Blocking) -> io::Result<IncomingSnapshot> {
        IncomingSnapshot::begin(TemporaryFile { path }, blocking).await
    }

    pub(super) async fn begin(temporary: TemporaryFile, blocking: Blocking) -> io::Result<IncomingSnapshot> {
        let created = temporary.path.clone();
        let file = blocking.run(move || files::create_file(&created)).await?;
        Ok(IncomingSnapshot { temporary, file: Arc::new(file), bytes: 0, blocking })
    }

    /// Appends what has come.
    pub async fn write(&mut self, chunk: Vec<u8>) -> io::Result<()> {
        self.bytes += chunk.len() as u64;
        let file = self.file.clone();
        self.blocking.run(move || (&*file).write_all(&chunk)).await
    }

    /// How much has come.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads what has come, and believes it only if it is a whole snapshot.
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

/// A snapshot from a peer that was read whole. Raft need not want it: its file is gone if this is dropped before it
/// is adopted.
#[derive(Debug)]
pub struct ReceivedSnapshot {
    pub(super) incoming: IncomingSnapshot,
    pub(super) description: SnapshotFile,
    rooms: Rooms,
}

impl ReceivedSnapshot {
    /// What it says about itself.
    pub fn description(&self) -> &SnapshotFile {
        &self.description
    }

    /// The state in it.
    pub fn rooms(&self) -> &Rooms {
        &self.rooms
    }
}
