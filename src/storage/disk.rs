//! What the storage asks of the machine beside files: to bring things to the disk for good. A simulation has a disk of its own, which loses in a power cut what was not brought to it.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::blocking::Blocking;

/// Decides what survives a power cut.
pub trait Disk: Debug + Send + Sync + 'static {
    /// Brings a file's content to the disk.
    fn sync_file(&self, path: &Path, file: &File) -> io::Result<()>;

    /// Brings the names in a folder to the disk. A new file without this can be gone after a power cut, with all
    /// its flushed content.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Brings every file below a folder, and the folders, to the disk.
    fn sync_tree(&self, folder: &Path) -> io::Result<()>;

    /// Whether raft-log is to flush its files, which it does itself.
    fn log_syncs_itself(&self) -> bool;

    /// Is told when raft-log has written, and flushed if it was to, all that it had.
    fn log_written(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    /// How long the next flush of the log is held up.
    fn stall(&self) -> Option<Duration> {
        None
    }

    /// Where work that blocks is done.
    fn blocking(&self) -> Blocking {
        Blocking::OnThreads
    }
}

/// The machine's own disk, and whether what is reported as stored survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It does: nothing is reported before it is flushed.
    #[default]
    Fsync,
    /// It doesn't: every flush is skipped. A test of power cuts that cannot fail this way proves nothing.
    NoneForTests,
}

impl Disk for Durability {
    fn sync_file(&self, _path: &Path, file: &File) -> io::Result<()> {
        match self {
            Durability::Fsync => file.sync_all(),
            Durability::NoneForTests => Ok(()),
        }
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match self {
            Durability::Fsync => File::open(folder)?.sync_all(),
            Durability::NoneForTests => Ok(()),
        }
    }

    fn sync_tree(&self, folder: &Path) -> io::Result<()> {
        match self {
            Durability::Fsync => sync_tree(folder),
            Durability::NoneForTests => Ok(()),
        }
    }

    fn log_syncs_itself(&self) -> bool {
        *self == Durability::Fsync
    }
}

fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_tree(&entry.path())?;
            continue;
        }
        match File::open(entry.path()) {
            Ok(file) => file.sync_data()?,
            // sled replaces its own snapshot files meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    File::open(folder)?.sync_all()
}
