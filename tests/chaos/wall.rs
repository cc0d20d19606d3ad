//! A wall clock of its own for a node, which can be set while it runs: libfaketime, which is told to leave the
//! monotonic clocks alone.

use std::path::{Path, PathBuf};

/// The wall clock of one node.
pub struct WallClock {
    library: PathBuf,
    /// By how much it is wrong. Read anew by each look at the clock.
    file: PathBuf,
}

impl WallClock {
    pub fn make(file: PathBuf) -> Result<WallClock, String> {
        let clock = WallClock { library: WallClock::library()?, file };
        clock.set(0);
        Ok(clock)
    }

    /// Where libfaketime is.
    pub fn library() -> Result<PathBuf, String> {
        let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|folder| folder.path());
        let library = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists());
        library.ok_or_else(|| "libfaketime is not installed".to_owned())
    }

    /// Makes it wrong by so many seconds, from now on.
    pub fn set(&self, seconds: i64) {
        let aside = Path::with_extension(&self.file, "new");
        std::fs::write(&aside, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(aside, &self.file).unwrap();
    }

    /// Whether its node has looked at it since it was set last. Nobody else does.
    pub fn was_read(&self) -> bool {
        let file = std::fs::metadata(&self.file).unwrap();
        file.accessed().unwrap() > file.modified().unwrap()
    }

    /// What a process must find in its environment to have this clock.
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
