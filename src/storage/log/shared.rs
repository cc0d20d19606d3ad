//! What the log's handles and the flush thread have in common.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use raft_log::RaftLog;
use tokio::sync::watch;

use super::super::data_dir::DataDir;
use super::super::error::StorageError;
use super::types::LogTypes;

/// What the handles and the flush thread have in common.
pub(super) struct Shared {
    pub(super) log: RwLock<RaftLog<LogTypes>>,
    pub(super) stats: Counters,
    pub(super) failure: watch::Sender<Option<String>>,
    // The last field, so that the directory is unlocked only when the log is closed.
    pub(super) dir: Arc<DataDir>,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) flushes: AtomicU64,
    pub(super) entries_appended: AtomicU64,
}

/// What the log has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStats {
    /// How often the disk was flushed.
    pub flushes: u64,
    /// How many entries were appended.
    pub entries_appended: u64,
}

impl Shared {
    pub(super) fn failure(&self) -> Option<StorageError> {
        self.failure.borrow().clone().map(StorageError::Stopped)
    }

    /// Keeps the first failure; what fails later fails because of it.
    pub(super) fn fail(&self, why: &str) {
        self.failure.send_if_modified(|failure| match failure {
            Some(_) => false,
            None => {
                *failure = Some(why.to_owned());
                true
            }
        });
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, RaftLog<LogTypes>> {
        self.log.read()
    }

    /// The log, to be changed. `change` fails for good: raft-log's memory may have it in part.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut RaftLog<LogTypes>) -> io::Result<T>) -> io::Result<T> {
        if let Some(failure) = self.failure() {
            return Err(failure.into());
        }
        let mut log: RwLockWriteGuard<'_, _> = self.log.write();
        change(&mut log).inspect_err(|error| self.fail(&error.to_string()))
    }
}
