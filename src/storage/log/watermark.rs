//! The least content of the log, in a file of its own.
//!
//! A log that has lost its last file or its tail still opens, and is only shorter. A node without its vote, or without
//! entries that it has acknowledged, would break Raft's promises unnoticed. So this file also has the vote, the last
//! flushed index and the last file of the log. A log that is behind its watermark is damaged.
//!
//! The watermark may be behind the log, but must never be ahead. So it is raised after the log is flushed, and lowered
//! before a truncation. The vote and the last file are written here before anything that depends on them is
//! acknowledged. The index follows within a second.
//!
//! The file begins with the format of the log ([`LOG_FORMAT`]). A version that raises it must write it here before it
//! opens the log.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::data_dir::DataDir;
use super::super::error::StorageError;
use super::super::files;
use super::types::LOG_FORMAT;
use crate::codec;
use crate::raft_types::Vote;

const THING: &str = "watermark";

/// The least content of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Watermark {
    /// The vote, or a later one.
    pub(super) vote: Option<Vote>,
    /// An entry with this index. It may have been purged since.
    pub(super) last_index: Option<u64>,
    /// A file that starts at this offset, or at a later one. raft-log calls its files chunks.
    pub(super) open_chunk: u64,
}

/// Reads the watermark and checks the format of the log, without a change to any file. `None` if there is no watermark.
pub(super) fn read(dir: &DataDir) -> Result<Option<Watermark>, StorageError> {
    let path = dir.join(THING);
    let Some(bytes) = files::read_if_there(THING, &path)? else { return Ok(None) };
    let (log_format, watermark) = codec::decode(&bytes).map_err(StorageError::decode(THING, &path))?;
    codec::check_format(log_format, LOG_FORMAT).map_err(StorageError::decode("log", &dir.join("log")))?;
    Ok(Some(watermark))
}

/// The watermark and its file.
#[derive(Debug)]
pub(super) struct WatermarkFile {
    dir: Arc<DataDir>,
    written: Watermark,
}

impl WatermarkFile {
    /// Reads the watermark, or creates it for a log that doesn't exist yet.
    pub(super) fn open(dir: Arc<DataDir>, log_exists: bool) -> Result<WatermarkFile, StorageError> {
        match read(&dir)? {
            Some(written) => Ok(WatermarkFile { dir, written }),
            // The watermark is created before the log. So if a log has no watermark, the watermark was lost.
            None if log_exists => {
                Err(StorageError::damaged(THING, &dir.join(THING), "it is missing, but there is a log"))
            }
            None => {
                let mut file = WatermarkFile { dir, written: Watermark::default() };
                file.write(Watermark::default())?;
                Ok(file)
            }
        }
    }

    /// The watermark on the disk.
    pub(super) fn written(&self) -> &Watermark {
        &self.written
    }

    /// Replaces the watermark. It is flushed when this returns.
    pub(super) fn write(&mut self, watermark: Watermark) -> Result<(), StorageError> {
        let bytes =
            codec::encode(&(LOG_FORMAT, &watermark)).map_err(|source| StorageError::Encode { thing: THING, source })?;
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
