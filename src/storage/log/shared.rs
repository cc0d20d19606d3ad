//! The state that the log's handles and the flush task share: the log itself, its first failure, and its counters.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};
use raft_log::RaftLog;
use tokio::sync::watch;

use super::super::data_dir::DataDir;
use super::super::error::StorageError;
use super::types::LogTypes;

/// The open log, shared by its handles and the flush task.
pub(super) struct Shared {
    pub(super) log: RwLock<RaftLog<LogTypes>>,
    counters: Counters,
    failure: watch::Sender<Option<String>>,
    // The last field, so that the directory is unlocked only after the log is closed.
    pub(super) dir: Arc<DataDir>,
}

#[derive(Default)]
struct Counters {
    flushes: AtomicU64,
    entries_appended: AtomicU64,
}

/// Counters of the log, from zero at each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStats {
    /// How often the disk was flushed.
    pub flushes: u64,
    /// How many entries were appended.
    pub entries_appended: u64,
}

impl Shared {
    pub(super) fn new(log: RaftLog<LogTypes>, dir: Arc<DataDir>) -> Shared {
        let (counters, failure) = (Counters::default(), watch::Sender::new(None));
        Shared { log: RwLock::new(log), counters, failure, dir }
    }

    /// The first failure, if the log has failed.
    pub(super) fn failure(&self) -> Option<StorageError> {
        self.failure.borrow().clone().map(StorageError::Stopped)
    }

    /// Waits until the log has failed.
    pub(super) async fn failed(&self) -> StorageError {
        let mut failure = self.failure.subscribe();
        let why = failure.wait_for(Option::is_some).await.expect("the sender is a field of self");
        StorageError::Stopped(why.clone().unwrap_or_default())
    }

    /// Keeps the first failure. Later failures follow from it.
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

    /// Changes the log. A failure is final, because raft-log may then have a part of the change in its memory.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut RaftLog<LogTypes>) -> io::Result<T>) -> io::Result<T> {
        if let Some(failure) = self.failure() {
            return Err(failure.into());
        }
        change(&mut self.log.write()).inspect_err(|error| self.fail(&error.to_string()))
    }

    pub(super) fn count_flush(&self) {
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_appended(&self, entries: u64) {
        self.counters.entries_appended.fetch_add(entries, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> LogStats {
        LogStats {
            flushes: self.counters.flushes.load(Ordering::Relaxed),
            entries_appended: self.counters.entries_appended.load(Ordering::Relaxed),
        }
    }
}
