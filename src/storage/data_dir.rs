//! The data directory as a whole: checks that it is ours, locks it, and keeps a reserve for a full disk.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::warn;

use super::config::StorageConfig;
use super::disk::Disk;
use super::error::StorageError;
use super::files;

const THING: &str = "data directory";

/// These names may be in a directory without an identity file, so a first start can be repeated after a crash.
/// `lost+found` is in every new ext4 file system.
const BEFORE_IDENTITY: [&str; 3] = ["lock", "identity.tmp", "lost+found"];

/// Enough to open a torn log and to write a purge on a full disk. Both need space before they free any.
const RESERVE_BYTES: usize = 4 << 20;

/// A data directory, locked by this process until the last store in it is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    disk: Arc<dyn Disk>,
    _lock: File,
}

impl DataDir {
    /// Creates the directory if necessary, and locks it. A directory with other content is left unchanged.
    pub(super) fn open(config: &StorageConfig) -> Result<DataDir, StorageError> {
        let path = config.dir.clone();
        make(&path, &*config.disk)?;
        refuse_foreign(&path)?;
        let lock = lock(&path)?;
        Ok(DataDir { path, disk: config.disk.clone(), _lock: lock })
    }

    /// The path of a file or folder in this directory.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path of the directory itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Flushes files and folders of this directory.
    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// A folder in this directory. It is created if it doesn't exist.
    pub(super) fn folder(&self, thing: &'static str, name: &str) -> Result<PathBuf, StorageError> {
        let folder = self.join(name);
        if !folder.exists() {
            files::create_folder(&folder).map_err(StorageError::io(thing, "create", &folder))?;
            self.disk.sync_folder(&self.path).map_err(StorageError::io(thing, "flush the folder of", &self.path))?;
        }
        Ok(folder)
    }

    /// Removes the reserve file, so that a node whose disk is full can start. Returns whether there was one.
    pub(super) fn release_reserve(&self) -> Result<bool, StorageError> {
        let path = self.join("reserve");
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StorageError::io("reserve", "remove", &path)(error)),
        }
    }

    /// Writes the reserve file for the next start. A node without it can still serve, so a failure is only a warning.
    pub(super) fn take_reserve(&self) {
        let path = self.join("reserve");
        if let Err(error) = write_reserve(&path) {
            warn!(
                path = %path.display(), %error,
                "the reserve file could not be written; if the disk is nearly full, free some space"
            );
            // A part of the reserve would only take the space that is left.
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Creates the directory and its parents, and flushes the name of each.
fn make(path: &Path, disk: &dyn Disk) -> Result<(), StorageError> {
    let missing: Vec<&Path> =
        path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
    files::create_folder(path).map_err(StorageError::io(THING, "create", path))?;
    for made in missing {
        let above = made.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        disk.sync_folder(above).map_err(StorageError::io(THING, "flush the folder of", above))?;
    }
    Ok(())
}

fn refuse_foreign(path: &Path) -> Result<(), StorageError> {
    let names = files::names_in(THING, path)?;
    if names.iter().any(|name| name == "identity") {
        return Ok(());
    }
    match names.into_iter().find(|name| !BEFORE_IDENTITY.contains(&name.as_str())) {
        Some(found) => Err(StorageError::Foreign { path: path.to_owned(), found }),
        None => Ok(()),
    }
}

fn lock(directory: &Path) -> Result<File, StorageError> {
    let path = directory.join("lock");
    let file = files::create_file(&path).map_err(StorageError::io("lock", "create", &path))?;
    match files::take_lock(|error| matches!(error, TryLockError::WouldBlock), || file.try_lock()) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StorageError::InUse { path: directory.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StorageError::io("lock", "take", &path)(error)),
    }
}

fn write_reserve(path: &Path) -> io::Result<()> {
    let mut file = files::create_file(path)?;
    let flags = rustix::fs::FallocateFlags::empty();
    match rustix::fs::fallocate(&file, flags, 0, RESERVE_BYTES as u64) {
        Err(rustix::io::Errno::OPNOTSUPP) => file.write_all(&vec![0; RESERVE_BYTES]),
        result => Ok(result?),
    }
}
