//! A disk for the unit tests of the storage.

use super::*;

/// Skips every flush, which saves time.
#[derive(Debug)]
pub(in crate::storage) struct UnflushedDisk;

impl Disk for UnflushedDisk {
    fn sync_file(&self, _path: &Path, _file: &File) -> io::Result<()> {
        Ok(())
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
