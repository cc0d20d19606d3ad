//! The settings of the storage.

use std::path::PathBuf;
use std::sync::Arc;

use super::disk::{Disk, SystemDisk};

/// Where a node stores its data, and how.
#[derive(Debug, Clone)]
pub struct StorageConfig {
    /// The data directory.
    pub dir: PathBuf,
    /// The node's name, which is written into a new directory.
    pub name: String,
    /// Flushes files and folders.
    pub disk: Arc<dyn Disk>,
    /// At this size the log begins its next file.
    pub log_chunk_bytes: usize,
}

impl StorageConfig {
    /// The settings of a real node.
    pub fn new(dir: impl Into<PathBuf>, name: impl Into<String>) -> StorageConfig {
        StorageConfig {
            dir: dir.into(),
            name: name.into(),
            disk: Arc::new(SystemDisk),
            // It limits the log's memory, and the pause when a new file begins. With 8 MiB the process took 46 MiB,
            // and the pause 11 ms.
            log_chunk_bytes: 4 << 20,
        }
    }
}
