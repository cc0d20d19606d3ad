//! Gives a node a wall clock of its own that can be set while the node runs. It uses libfaketime, and leaves the
//! monotonic clocks alone.

use std::path::{Path, PathBuf};

/// The wall clock of one node.
pub struct WallClock {
    library: PathBuf,
    /// Holds the error of the clock. libfaketime reads it at each reading of the clock.
    file: PathBuf,
}

impl WallClock {
    pub fn make(file: PathBuf) -> Result<WallClock, String> {
        let clock = WallClock { library: WallClock::library()?, file };
        clock.set(0);
        Ok(clock)
    }

    /// The path of libfaketime.
    pub fn library() -> Result<PathBuf, String> {
        let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|folder| folder.path());
        let library = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists());
        library.ok_or_else(|| "libfaketime is not installed".to_owned())
    }

    /// Makes the clock wrong by this many seconds from now on.
    pub fn set(&self, seconds: i64) {
        let aside = Path::with_extension(&self.file, "new");
        std::fs::write(&aside, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(aside, &self.file).unwrap();
    }

    /// Whether the node has read the clock since it was set last. No other process reads the file.
    pub fn was_read(&self) -> bool {
        let file = std::fs::metadata(&self.file).unwrap();
        file.accessed().unwrap() > file.modified().unwrap()
    }

    /// The environment variables that give a process this clock.
    pub fn environment(&self) -> [(&'static str, &Path); 5] {
        [
            ("LD_PRELOAD", &self.library),
            ("FAKETIME_TIMESTAMP_FILE", &self.file),
            ("FAKETIME_NO_CACHE", Path::new("1")),
            ("FAKETIME_DONT_FAKE_MONOTONIC", Path::new("1")),
            ("DONT_FAKE_MONOTONIC", Path::new("1")),
        ]
    }
}
