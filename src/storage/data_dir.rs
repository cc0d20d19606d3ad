//! The data directory as a whole: whose it is, who works in it, and the space it keeps back.

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

/// What may be in a directory before its identity is written, so that a first start that was cut off can go on.
/// `lost+found` is what a freshly made file system contains.
const BEFORE_IDENTITY: [&str; 3] = ["lock", "identity.tmp", "lost+found"];

/// Enough for a torn log to be opened and for a purge to be written on a full disk: both need space before
/// they free any.
const RESERVE_BYTES: usize = 4 << 20;

/// A data directory that this process has for itself, until the last store in it is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    disk: Arc<dyn Disk>,
    _lock: File,
}

impl DataDir {
    /// Makes the directory or takes it over, and locks it. A directory of something else is left as it is.
    pub(super) fn open(config: &StorageConfig) -> Result<DataDir, StorageError> {
        let path = config.dir.clone();
        make(&path, &*config.disk)?;
        refuse_foreign(&path)?;
        let lock = lock(&path)?;
        Ok(DataDir { path, disk: config.disk.clone(), _lock: lock })
    }

    /// Where something in this directory is.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What things are brought to.
    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// A folder in this directory, made if it isn't there.
    pub(super) fn folder(&self, thing: &'static str, name: &str) -> Result<PathBuf, StorageError> {
        let folder = self.join(name);
        if !folder.exists() {
            files::create_folder(&folder).map_err(StorageError::io(thing, "create", &folder))?;
            self.disk.sync_folder(&self.path).map_err(StorageError::io(thing, "flush the folder of", &self.path))?;
        }
        Ok(folder)
    }

    /// Frees the space that was kept back, so that a node whose disk is full can start.
    pub(super) fn release_reserve(&self) -> Result<(), StorageError> {
        let path = self.join("reserve");
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StorageError::io("reserve", "remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Keeps space back for the next start. A disk that is too full for it can still serve, so it is only told.
    pub(super) fn take_reserve(&self) {
        let path = self.join("reserve");
        if let Err(error) = write_reserve(&path) {
            warn!(path = %path.display(), %error, "no space for the reserve file; the disk is nearly full");
            // Half a reserve would only take what is left.
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Makes the directory and those above it, and flushes the name of each.
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
