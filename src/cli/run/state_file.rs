//! A file that tells the command how its authority stands: JSON, replaced as a whole at each renewal.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use crate::random::{SystemRandom, random_bytes};

/// What is in the file. The continuous clock is `CLOCK_BOOTTIME` in milliseconds, as in the first number of
/// `/proc/uptime`.
#[derive(Debug, Serialize)]
pub struct State<'a> {
    pub schema_version: u8,
    pub election_id: &'a str,
    pub candidate_id: &'a str,
    pub term: u64,
    pub expires_at: &'a str,
    pub authority_ends_continuous_ms: u64,
    pub renewals: u64,
}

/// The file, and the folder that only this user can read. Both go when it is dropped.
pub struct StateFile {
    folder: PathBuf,
}

impl StateFile {
    /// Makes the folder.
    pub fn create() -> std::io::Result<StateFile> {
        let base = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
        let random = URL_SAFE_NO_PAD.encode(random_bytes::<9>(&SystemRandom));
        let folder = base.unwrap_or_else(std::env::temp_dir).join(format!("quorate-run-{random}"));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(StateFile { folder })
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    /// Replaces it. A reader sees the old one or the new one.
    pub fn write(&self, state: &State<'_>) -> std::io::Result<()> {
        let new = self.folder.join("state.json.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(serde_json::to_string(state)?.as_bytes())?;
        file.write_all(b"\n")?;
        fs::rename(new, self.path())
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::debug!(folder = %folder.display(), %error, "the state file is left behind");
    }
}
