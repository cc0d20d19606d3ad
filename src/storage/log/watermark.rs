//! How far the log is known to have come, in a file of its own.
//!
//! A log that has lost its last file, or its tail, still opens: it is merely shorter. A node that has forgotten
//! entries which a majority was counted for, or its vote, would break Raft's promises without anybody
//! noticing. So the vote, the last flushed index and the last file of the log are noted here as well, and a log
//! that is behind its watermark is damaged.
//!
//! The watermark follows the log, so it may be behind it, but must never be ahead: it is written after what it
//! notes is flushed, and before a truncation. Vote and file are noted before anything that depends on them is
//! acknowledged; the index follows within a second.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::data_dir::DataDir;
use super::super::error::StorageError;
use super::super::files;
use crate::codec;
use crate::raft_types::Vote;

const THING: &str = "watermark";

/// What the log has at least.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Watermark {
    /// The vote, or a later one.
    pub(super) vote: Option<Vote>,
    /// An entry with this index, or one purged by now.
    pub(super) last_index: Option<u64>,
    /// A file (raft-log says chunk) that starts at this offset, or at a later one.
    pub(super) open_chunk: u64,
}

/// The watermark and its file.
#[derive(Debug)]
pub(super) struct WatermarkFile {
    dir: Arc<DataDir>,
    written: Watermark,
}

impl WatermarkFile {
    /// Reads the watermark, or makes one for a log that doesn't exist yet.
    pub(super) fn open(dir: Arc<DataDir>, log_exists: bool) -> Result<WatermarkFile, StorageError> {
        let path = dir.join(THING);
        match files::read_if_there(THING, &path)? {
            Some(bytes) => {
                let written = codec::decode(&bytes).map_err(StorageError::decode(THING, &path))?;
                Ok(WatermarkFile { dir, written })
            }
            // It is made before the log is, so a log without one has lost it.
            None if log_exists => Err(StorageError::damaged(THING, &path, "it is missing, though there is a log")),
            None => {
                let mut file = WatermarkFile { dir, written: Watermark::default() };
                file.write(Watermark::default())?;
                Ok(file)
            }
        }
    }

    /// What is on the disk.
    pub(super) fn written(&self) -> &Watermark {
        &self.written
    }

    /// Replaces it; when this returns, it is on the disk.
    pub(super) fn write(&mut self, watermark: Watermark) -> Result<(), StorageError> {
        let bytes = codec::encode(&watermark).map_err(|source| StorageError::Encode { thing: THING, source })?;
        files::replace(THING, &self.path(), &bytes, self.dir.disk())?;
        self.written = watermark;
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.dir.join(THING)
    }
}

#[cfg(test)]
mod fuzz_tests;
