//! The raft log and the vote, in raft-log.
//!
//! Nothing is reported as stored before it is flushed: a vote lost in a power cut could make two raft leaders in
//! one raft term. After the first failure nothing more is written: what is in memory is then ahead of the disk,
//! so the process has to end.

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

/// What one read for a peer may take. It bounds the memory of a raft message; the message itself may be larger.
const READ_BYTES_MAX: u64 = 1 << 20;

/// The raft log of this node. Clones share it; dropping the last one closes it, and waits until it is flushed.
#[derive(Clone)]
pub struct LogStore {
    // The first field: the flush task ends before the log is closed.
    queue: Arc<FlushQueue>,
    shared: Arc<Shared>,
}

impl LogStore {
    /// Opens the log and compares it with its watermark. `snapshot` is the newest snapshot's last entry: where a
    /// crash has come between a snapshot's arrival and the purge that it calls for, the purge is made up for.
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

    /// Returns once the log has failed, with the reason. Raft hears of it when it writes next; until then it would go on
    /// as if this node could store what it is sent.
    pub async fn failed(&self) -> StorageError {
        self.shared.failed().await
    }

    /// What the log has done since it was opened.
    pub fn stats(&self) -> LogStats {
        self.shared.stats()
    }

    /// The last entry, or the last purged one if there is none.
    pub fn last_log_id(&self) -> Option<LogId> {
        self.shared.read().log_state().last().map(|id| id.0)
    }

    /// The last entry that was purged.
    pub fn purged_log_id(&self) -> Option<LogId> {
        self.shared.read().log_state().purged().map(|id| id.0)
    }

    /// Whether the entry of this id was ever here: it is in the log, or is the last one purged.
    pub(in crate::storage) fn has(&self, log_id: &LogId) -> bool {
        open::log_id_at(&self.shared.read(), log_id.index) == Some(*log_id)
    }

    /// The data directory.
    pub(in crate::storage) fn path(&self) -> &std::path::Path {
        self.shared.dir.path()
    }

    fn read_while(&self, start: u64, end: u64, bytes_max: u64) -> io::Result<Vec<Entry>> {
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
        self.read_while(start, end, u64::MAX)
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.shared.read().log_state().vote().map(|vote| vote.0))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.read_while(start, end, READ_BYTES_MAX)
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
        self.queue.send_and_wait(|answer| Job::Vote(*vote, answer)).await
    }

    /// Best effort, and not flushed: the next append carries it.
    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let Some(committed) = committed.map(StoredLogId) else { return Ok(()) };
        self.shared.change(|log| {
            let state = log.log_state();
            // raft-log takes an id that isn't newer, or that the log doesn't reach, for an error, and openraft
            // takes an error for the end.
            let is_news = Some(&committed) > state.committed() && Some(&committed) <= state.last();
            if is_news { log.commit(committed).map(|_| ()) } else { Ok(()) }
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
        self.queue.send_and_wait(|answer| Job::LowerWatermark(kept, answer)).await?;
        self.shared.change(|log| log.truncate(next).map(|_| ()))
    }

    async fn purge(&mut self, log_id: LogId) -> io::Result<()> {
        let tail = open::tail_contradicting(&self.shared.read(), &log_id);
        if let Some(next) = tail {
            self.queue.send_and_wait(|answer| Job::LowerWatermark(next.checked_sub(1), answer)).await?;
        }
        self.shared.change(|log| open::purge(log, tail, log_id))?;
        self.queue.send(Job::Purged)
    }
}
