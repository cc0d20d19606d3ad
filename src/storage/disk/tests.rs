//! A disk for the unit tests of the storage.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Skips every flush, which saves time. The next flush of a file fails once if `fails_next` is set.
#[derive(Debug, Default)]
pub(in crate::storage) struct UnflushedDisk {
    pub(in crate::storage) fails_next: AtomicBool,
}

impl Disk for UnflushedDisk {
    fn sync_file(&self, _path: &Path, _file: &File) -> io::Result<()> {
        if self.fails_next.swap(false, Ordering::Relaxed) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_tree(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn log_syncs_itself(&self) -> bool {
        false
    }
}
