//! The file in which a snapshot is written, before it is complete.

use std::path::PathBuf;

/// A file that is removed when this is dropped, unless it was renamed. If a crash leaves it, the next start removes it.
#[derive(Debug)]
pub(super) struct TemporaryFile {
    pub(super) path: PathBuf,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
