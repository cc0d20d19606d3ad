//! A node's disk. The real storage code writes real files. A power cut leaves only what was flushed before it.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use quorate::storage::{Blocking, Disk};
use rand::RngExt;
use rand::rngs::StdRng;

/// A disk that remembers what was flushed.
#[derive(Debug)]
pub struct SimulatedDisk {
    root: PathBuf,
    durable: Mutex<Durable>,
    stall_ms: AtomicU64,
    fails: AtomicBool,
    /// Whether flushes of the log only pretend to work.
    forgets: bool,
}

/// What a power cut leaves.
#[derive(Debug, Default)]
struct Durable {
    /// The path of each file, and its inode.
    names: BTreeMap<PathBuf, u64>,
    /// The content of each file at its last flush, by inode.
    content: HashMap<u64, Vec<u8>>,
    /// The length of each file of the log at its last flush. These files only grow.
    log: BTreeMap<PathBuf, u64>,
}

impl SimulatedDisk {
    pub fn new(root: PathBuf, forgets: bool) -> Self {
        fs::create_dir_all(&root).unwrap();
        Self { root, durable: Mutex::default(), stall_ms: AtomicU64::new(0), fails: AtomicBool::new(false), forgets }
    }

    /// The node's data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.root.join("data")
    }

    /// From now on each flush of the log takes this long.
    pub fn set_stall(&self, duration_ms: u64) {
        self.stall_ms.store(duration_ms, Ordering::Relaxed);
    }

    /// From now on every flush fails, or works again.
    pub fn set_failing(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }

    fn flush(&self, flush: impl FnOnce(&mut Durable) -> io::Result<()>) -> io::Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        flush(&mut self.durable())
    }

    fn durable(&self) -> MutexGuard<'_, Durable> {
        self.durable.lock().unwrap()
    }

    /// Takes away what was not flushed. By chance, some of it may stay, as on a real disk. The node must not be
    /// running.
    pub fn cut_power(&self, random: &mut StdRng) {
        let durable = self.durable();
        let mut files = Vec::new();
        files_below(&self.root, &mut files);
        // The database may have reached the disk without a flush.
        let database_is_kept = random.random_bool(0.3);
        for path in files {
            if path.starts_with(self.data_dir().join("log")) {
                let written = fs::metadata(&path).unwrap().len();
                match durable.log.get(&path) {
                    // A torn write: a part of the bytes after the last flush is there as well.
                    Some(length) => truncate(&path, random.random_range(*length..=written.max(*length))),
                    None if random.random_bool(0.5) => truncate(&path, random.random_range(0..=written)),
                    None => fs::remove_file(&path).unwrap(),
                }
                continue;
            }
            if database_is_kept && path.starts_with(self.data_dir().join("leases")) {
                continue;
            }
            if !durable.names.contains_key(&path) {
                fs::remove_file(&path).unwrap();
            }
        }
        for (path, inode) in &durable.names {
            if database_is_kept && path.starts_with(self.data_dir().join("leases")) {
                continue;
            }
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, durable.content.get(inode).map_or(&[][..], Vec::as_slice)).unwrap();
        }
        drop(durable);
        self.note_all_files();
    }

    /// Takes note of everything that is on the disk now. The files have new inodes.
    fn note_all_files(&self) {
        let mut files = Vec::new();
        files_below(&self.root, &mut files);
        let mut durable = self.durable();
        *durable = Durable::default();
        for path in files {
            if path.starts_with(self.data_dir().join("log")) {
                durable.log.insert(path.clone(), fs::metadata(&path).unwrap().len());
            } else {
                durable.note(&path).unwrap();
            }
        }
    }
}

impl Durable {
    fn note(&mut self, path: &Path) -> io::Result<()> {
        let inode = fs::metadata(path)?.ino();
        self.content.insert(inode, fs::read(path)?);
        self.names.insert(path.to_owned(), inode);
        Ok(())
    }
}

impl Disk for SimulatedDisk {
    fn sync_file(&self, path: &Path, file: &File) -> io::Result<()> {
        self.flush(|durable| {
            durable.content.insert(file.metadata()?.ino(), fs::read(path)?);
            Ok(())
        })
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.flush(|durable| {
            durable.names.retain(|path, _| path.parent() != Some(folder));
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    durable.names.insert(entry.path(), entry.metadata()?.ino());
                }
            }
            Ok(())
        })
    }

    fn sync_tree(&self, folder: &Path) -> io::Result<()> {
        self.flush(|durable| {
            durable.names.retain(|path, _| !path.starts_with(folder));
            let mut files = Vec::new();
            files_below(folder, &mut files);
            files.iter().try_for_each(|path| durable.note(path))
        })
    }

    fn log_syncs_itself(&self) -> bool {
        false
    }

    fn log_written(&self, folder: &Path) -> io::Result<()> {
        self.flush(|durable| {
            if self.forgets {
                return Ok(());
            }
            durable.log.clear();
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                durable.log.insert(entry.path(), entry.metadata()?.len());
            }
            Ok(())
        })
    }

    fn stall(&self) -> Option<Duration> {
        let millis = self.stall_ms.load(Ordering::Relaxed);
        (millis > 0).then_some(Duration::from_millis(millis))
    }

    fn blocking(&self) -> Blocking {
        Blocking::AtOnce
    }
}

/// All files below a folder, in an order that does not depend on the file system.
fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() { files_below(&path, files) } else { files.push(path) }
    }
}

fn truncate(path: &Path, length: u64) {
    File::options().write(true).open(path).unwrap().set_len(length).unwrap();
}
