//! A file that tells the command how long it may act: JSON, replaced as a whole at each renewal.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use crate::client::{HolderClock, Leadership, Standing, SystemHolderClock};
use crate::domain::millis;
use crate::random::{SystemRandom, random_bytes};

/// The content of the file.
#[derive(Debug, Serialize)]
struct State<'a> {
    schema_version: u8,
    election_id: &'a str,
    candidate_id: &'a str,
    term: u64,
    expires_at: &'a str,
    /// By `CLOCK_BOOTTIME`, which is also the first number in `/proc/uptime`.
    authority_ends_continuous_ms: u64,
    renewals: u64,
}

/// The file, in a folder that only this user can read. Dropping it removes both.
pub struct StateFile {
    folder: PathBuf,
}

impl StateFile {
    /// Creates the folder.
    pub fn create() -> std::io::Result<StateFile> {
        let base = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
        let random = URL_SAFE_NO_PAD.encode(random_bytes::<9>(&SystemRandom));
        let folder = base.unwrap_or_else(std::env::temp_dir).join(format!("quorate-run-{random}"));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(StateFile { folder })
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    /// Replaces the file. A reader sees either the old content or the new one.
    pub fn write(&self, leadership: &Leadership, standing: &Standing) -> std::io::Result<()> {
        let now = SystemHolderClock.now();
        let state = State {
            schema_version: 1,
            election_id: leadership.room().as_str(),
            candidate_id: leadership.candidate().as_str(),
            term: leadership.term().0,
            expires_at: &standing.expires_at,
            authority_ends_continuous_ms: millis(now.boot + leadership.authority().remaining(now)),
            renewals: standing.renewals,
        };
        let new = self.folder.join("state.json.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(serde_json::to_string(&state)?.as_bytes())?;
        file.write_all(b"\n")?;
        fs::rename(new, self.path())
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::debug!(folder = %self.folder.display(), %error, "the folder of the state file was not removed");
        }
    }
}
