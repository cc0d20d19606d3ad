//! What survives a power cut: the storage asks a [`Disk`] to flush files and folders. A simulation and some tests
//! have disks of their own, which lose data, fail or wait on purpose.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::blocking::Blocking;

/// Flushes files and folders. After a power cut only what was flushed is certain to be there.
pub trait Disk: Debug + Send + Sync + 'static {
    /// Flushes a file's content.
    fn sync_file(&self, path: &Path, file: &File) -> io::Result<()>;

    /// Flushes the names in a folder. Without this, a power cut can remove a new file although its content was
    /// flushed.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Flushes every file below a folder, and the folders themselves.
    fn sync_tree(&self, folder: &Path) -> io::Result<()>;

    /// Whether raft-log flushes its own files. If not, [`Disk::log_written`] must flush them.
    fn log_syncs_itself(&self) -> bool;

    /// Runs after raft-log has written everything it had, and flushed it if [`Disk::log_syncs_itself`].
    fn log_written(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    /// How long to delay the next flush of the log, to simulate a slow disk.
    fn stall(&self) -> Option<Duration> {
        None
    }

    /// Where blocking work is done.
    fn blocking(&self) -> Blocking {
        Blocking::OnThreads
    }
}

/// The machine's own disk. Nothing is reported as stored before it is flushed.
#[derive(Debug, Clone, Copy)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn sync_file(&self, _path: &Path, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn sync_tree(&self, folder: &Path) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.sync_tree(&entry.path())?;
                continue;
            }
            match File::open(entry.path()) {
                Ok(file) => file.sync_data()?,
                // sled may replace its own snapshot files during this loop.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.sync_folder(folder)
    }

    fn log_syncs_itself(&self) -> bool {
        true
    }
}

#[cfg(test)]
pub(super) mod tests;
