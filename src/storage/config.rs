//! Where and how to store.

use std::path::PathBuf;
use std::sync::Arc;

use super::disk::{Disk, SystemDisk};

/// Where and how to store.
#[derive(Debug, Clone)]
pub struct StorageConfig {
    /// The data directory.
    pub dir: PathBuf,
    /// The node's name, for a directory that is new.
    pub name: String,
    /// What things are brought to.
    pub disk: Arc<dyn Disk>,
    /// The size at which the log begins its next file.
    pub log_chunk_bytes: usize,
}

impl StorageConfig {
    /// The usual settings for a directory.
    pub fn new(dir: impl Into<PathBuf>, name: impl Into<String>) -> StorageConfig {
        StorageConfig {
            dir: dir.into(),
            name: name.into(),
            disk: Arc::new(SystemDisk),
            // It bounds the log's memory and the stall at a new file (RSS 46 MiB and 11 ms with 8 MiB).
            log_chunk_bytes: 4 << 20,
        }
    }
}
