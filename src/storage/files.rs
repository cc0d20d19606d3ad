//! Small operations on files. A file is replaced whole or not at all: a temporary file is written, flushed and
//! renamed, and then the folder is flushed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk::Disk;
use super::error::StorageError;

/// Creates a folder and its parents. Only the owner may enter them, so files with wider permissions in them are safe
/// as well. A folder that exists keeps its permissions.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates a file that only its owner may read, or empties the file of that name.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Replaces a small file. After a crash at any moment it has the old content or the new.
pub(super) fn replace(thing: &'static str, path: &Path, bytes: &[u8], disk: &dyn Disk) -> Result<(), StorageError> {
    let temporary = temporary_path(path);
    let write = || -> io::Result<()> {
        let mut file = create_file(&temporary)?;
        file.write_all(bytes)?;
        disk.sync_file(&temporary, &file)
    };
    write().map_err(StorageError::io(thing, "write", &temporary))?;
    rename(thing, &temporary, path, disk)
}

/// Renames a flushed file, and flushes its new name.
pub(super) fn rename(thing: &'static str, from: &Path, to: &Path, disk: &dyn Disk) -> Result<(), StorageError> {
    std::fs::rename(from, to).map_err(StorageError::io(thing, "rename", to))?;
    let folder = to.parent().expect("every file of the storage is in a folder");
    disk.sync_folder(folder).map_err(StorageError::io(thing, "flush the folder of", folder))
}

/// Where the new content of a file is written before it replaces the old.
fn temporary_path(path: &Path) -> PathBuf {
    path.with_extension("tmp")
}

/// The content of a file, or `None` if it doesn't exist.
pub(super) fn read_if_there(thing: &'static str, path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::io(thing, "read", path)(error)),
    }
}

/// The names in a folder, in no particular order.
pub(super) fn names_in(thing: &'static str, folder: &Path) -> Result<Vec<String>, StorageError> {
    std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect())
        .map_err(StorageError::io(thing, "list", folder))
}

/// How often a lock is tried, and the pause between two tries. Together they last one second.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Takes a file lock, and retries for a second while it is locked.
///
/// A lock can outlive its owner for a moment: a child process holds it between fork and exec, or a thread of the owner
/// has not ended yet. A restart must not fail because of that.
#[expect(clippy::disallowed_methods, reason = "only a lock that another process holds makes it sleep")]
pub(super) fn take_lock<T, E>(is_locked: impl Fn(&E) -> bool, mut take: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    for _ in 1..LOCK_TRIES {
        match take() {
            Err(error) if is_locked(&error) => std::thread::sleep(LOCK_PAUSE),
            result => return result,
        }
    }
    take()
}
