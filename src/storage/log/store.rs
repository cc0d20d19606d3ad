//! The raft log and the vote, as openraft uses them.
//!
//! Nothing is reported as stored before it is flushed: a vote lost in a power cut could make two raft leaders in
//! one raft term. After the first failure nothing more is written, and the process has to end, because its memory is
//! ahead of the disk.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{OptionalSend, RaftLogReader};
use raft_log::api::raft_log_writer::RaftLogWriter;

use super::super::data_dir::DataDir;
use super::super::error::StorageError;
use super::flush::Job;
use super::flush_queue::FlushQueue;
use super::open;
use super::pending::PendingFlush;
use super::shared::{LogStats, Shared};
use super::types::{Payload, StoredLogId, StoredVote};
use crate::raft_types::{Entry, LogId, TypeConfig, Vote};

/// The limit of one read for a peer, in bytes. It limits the memory of a raft message. One large entry may exceed it.
const READ_BYTES_MAX: u64 = 1 << 20;

/// The raft log of this node. Clones share it. Dropping the last one flushes and closes the log, and waits for that.
#[derive(Clone)]
pub struct LogStore {
    // The first field, so that the flush task ends before the log is closed.
    queue: Arc<FlushQueue>,
    shared: Arc<Shared>,
}

impl LogStore {
    /// Fails if a newer version wrote the log. No file is changed.
    pub(in crate::storage) fn check_format(dir: &DataDir) -> Result<(), StorageError> {
        open::check_format(dir)
    }

    /// Opens the log and compares it with its watermark. `snapshot` is the last entry of the newest snapshot. If a
    /// crash came after that snapshot arrived and before the log was purged, the log is purged now.
    pub(in crate::storage) fn open(
        dir: Arc<DataDir>,
        chunk_bytes: usize,
        snapshot: Option<LogId>,
    ) -> Result<LogStore, StorageError> {
        let (log, watermark) = open::open(&dir, chunk_bytes, snapshot)?;
        let path = dir.path().to_owned();
        let shared = Arc::new(Shared::new(log, dir));
        let queue = FlushQueue::start(shared.clone(), watermark);
        let queue = queue.map_err(StorageError::io("log", "start the flush thread of", &path))?;
        Ok(LogStore { queue: Arc::new(queue), shared })
    }

    /// Waits until the log has failed, and returns the reason. openraft learns of a failure only at its next write.
    /// Until then it would behave as if this node could store entries.
    pub async fn failed(&self) -> StorageError {
        self.shared.failed().await
    }

    /// The counters since the log was opened.
    pub fn stats(&self) -> LogStats {
        self.shared.stats()
    }

    /// The last entry. If the log has no entries, this is the last one that was purged.
    pub fn last_log_id(&self) -> Option<LogId> {
        self.shared.read().log_state().last().map(|id| id.0)
    }

    /// The last entry that was purged.
    pub fn purged_log_id(&self) -> Option<LogId> {
        self.shared.read().log_state().purged().map(|id| id.0)
    }

    /// Whether this entry is in the log, or is the last one that was purged.
    pub(in crate::storage) fn has(&self, log_id: &LogId) -> bool {
        open::log_id_at(&self.shared.read(), log_id.index) == Some(*log_id)
    }

    /// The data directory.
    pub(in crate::storage) fn data_dir(&self) -> &std::path::Path {
        self.shared.dir.path()
    }

    fn read_entries(&self, start: u64, end: u64, bytes_max: u64) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        for record in self.shared.read().read(start, end.max(start)) {
            let (log_id, payload) = record?;
            bytes += payload.approximate_bytes();
            if bytes > bytes_max && !entries.is_empty() {
                break;
            }
            entries.push(Entry::new(log_id.0, (*payload.0).clone()));
        }
        Ok(entries)
    }
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> io::Result<Vec<Entry>> {
        let start = match range.start_bound() {
            Bound::Included(index) => *index,
            Bound::Excluded(index) => index.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(index) => index.saturating_add(1),
            Bound::Excluded(index) => *index,
            Bound::Unbounded => u64::MAX,
        };
        self.read_entries(start, end, u64::MAX)
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.shared.read().log_state().vote().map(|vote| vote.0))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.read_entries(start, end, READ_BYTES_MAX)
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> io::Result<LogState<TypeConfig>> {
        Ok(LogState { last_purged_log_id: self.purged_log_id(), last_log_id: self.last_log_id() })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        self.shared.change(|log| log.save_vote(StoredVote(*vote)))?;
        self.queue.send_and_wait(|done| Job::Vote(*vote, done)).await
    }

    /// Not flushed, because openraft can do without it. The next flush of an append includes it.
    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let Some(committed) = committed.map(StoredLogId) else { return Ok(()) };
        self.shared.change(|log| {
            let state = log.log_state();
            // raft-log returns an error if the id isn't newer, or is beyond the log's end. openraft would then stop.
            let is_next = Some(&committed) > state.committed() && Some(&committed) <= state.last();
            if is_next { log.commit(committed).map(|_| ()) } else { Ok(()) }
        })
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.shared.read().log_state().committed().map(|id| id.0))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let pending = PendingFlush::new(callback);
        let mut appended = 0;
        let records = entries.into_iter().map(|entry| {
            appended += 1;
            (StoredLogId(entry.log_id), Payload(Arc::new(entry.payload)))
        });
        self.shared.change(|log| log.append(records))?;
        self.shared.count_appended(appended);
        self.queue.send(Job::Entries(pending))
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> io::Result<()> {
        let kept = last_log_id.map(|id| id.index);
        let next = kept.map_or(0, |index| index + 1);
        if self.last_log_id().is_none_or(|last| last.index < next) {
            return Ok(());
        }
        self.queue.send_and_wait(|done| Job::LowerWatermark(kept, done)).await?;
        self.shared.change(|log| log.truncate(next).map(|_| ()))
    }

    async fn purge(&mut self, log_id: LogId) -> io::Result<()> {
        let tail = open::tail_contradicting(&self.shared.read(), &log_id);
        if let Some(next) = tail {
            self.queue.send_and_wait(|done| Job::LowerWatermark(next.checked_sub(1), done)).await?;
        }
        self.shared.change(|log| open::purge(log, tail, log_id))?;
        self.queue.send(Job::Purged)
    }
}
