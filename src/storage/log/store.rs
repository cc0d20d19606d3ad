//! The raft log and the vote, in raft-log.
//!
//! Nothing is reported as stored before it is flushed: a vote lost in a power cut could make two raft leaders in
//! one raft term. After the first failure nothing more is written: what is in memory is then ahead of the disk,
//! so the process has to end.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{OptionalSend, RaftLogReader};
use parking_lot::RwLock;
use raft_log::RaftLog;
use raft_log::api::raft_log_writer::RaftLogWriter;
use tokio::sync::{mpsc, oneshot, watch};

use super::super::blocking::Blocking;
use super::super::data_dir::DataDir;
use super::super::error::StorageError;
use super::flush::{Flusher, Job};
use super::open;
use super::pending::Waiting;
use super::shared::{Counters, LogStats, Shared};
use super::types::{LogTypes, Payload, StoredLogId, StoredVote};
use super::watermark::WatermarkFile;
use crate::raft_types::{Entry, LogId, TypeConfig, Vote};

/// What one read for a peer may take. It bounds the memory of a raft message; the message itself may be larger.
const READ_BYTES_MAX: u64 = 1 << 20;

/// The raft log of this node. Clones share it; dropping the last one closes it, and waits until it is flushed.
#[derive(Clone)]
pub struct LogStore {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    /// Not bounded by itself: openraft has one append at a time in its hands, and what it has in flight is
    /// bounded where commands are admitted.
    jobs: Option<mpsc::UnboundedSender<Job>>,
    flusher: Option<JoinHandle<()>>,
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
        LogStore::start(dir, log, watermark)
    }

    fn start(dir: Arc<DataDir>, log: RaftLog<LogTypes>, watermark: WatermarkFile) -> Result<LogStore, StorageError> {
        let path = dir.path().to_owned();
        let shared = Arc::new(Shared {
            log: RwLock::new(log),
            stats: Counters::default(),
            failure: watch::Sender::new(None),
            dir,
        });
        let (jobs, received) = mpsc::unbounded_channel();
        let flushing = Flusher::new(shared.clone(), received, watermark).run();
        let flusher = match shared.dir.disk().blocking() {
            Blocking::OnThreads => {
                Some(flush_thread(flushing).map_err(StorageError::io("log", "start the flush thread of", &path))?)
            }
            Blocking::AtOnce => {
                tokio::spawn(flushing);
                None
            }
        };
        Ok(LogStore { inner: Arc::new(Inner { shared, jobs: Some(jobs), flusher }) })
    }

    /// Returns once the log has failed, with the reason. Raft hears of it when it writes next; until then it would go on
    /// as if this node could store what it is sent.
    pub async fn failed(&self) -> StorageError {
        let mut failure = self.shared().failure.subscribe();
        let told = failure.wait_for(Option::is_some).await.expect("this handle keeps the sender");
        StorageError::Stopped(told.clone().unwrap_or_default())
    }

    /// What the log has done since it was opened.
    pub fn stats(&self) -> LogStats {
        let stats = &self.inner.shared.stats;
        LogStats {
            flushes: stats.flushes.load(Ordering::Relaxed),
            entries_appended: stats.entries_appended.load(Ordering::Relaxed),
        }
    }

    /// The last entry, or the last purged one if there is none.
    pub fn last_log_id(&self) -> Option<LogId> {
        self.inner.shared.read().log_state().last().map(|id| id.0)
    }

    /// The last entry that was purged.
    pub fn purged_log_id(&self) -> Option<LogId> {
        self.inner.shared.read().log_state().purged().map(|id| id.0)
    }

    /// Whether the entry of this id was ever here: it is in the log, or is the last one purged.
    pub(in crate::storage) fn has(&self, log_id: &LogId) -> bool {
        open::log_id_at(&self.inner.shared.read(), log_id.index) == Some(*log_id)
    }

    /// The data directory.
    pub(in crate::storage) fn path(&self) -> &std::path::Path {
        self.shared().dir.path()
    }

    fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    fn send(&self, job: Job) -> io::Result<()> {
        let jobs = self.inner.jobs.as_ref().expect("the sender is there until the last handle is dropped");
        // The thread is only gone if it panicked. The job's own Drop tells whoever waits for it.
        jobs.send(job).map_err(|_| io::Error::other("the log's flush thread has stopped"))
    }

    async fn ask(&self, job: impl FnOnce(oneshot::Sender<io::Result<()>>) -> Job) -> io::Result<()> {
        let (answer, answered) = oneshot::channel();
        self.send(job(answer))?;
        answered.await.unwrap_or_else(|_| Err(io::Error::other("the log's flush thread has stopped")))
    }

    fn read_while(&self, start: u64, end: u64, bytes_max: u64) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        for record in self.shared().read().read(start, end.max(start)) {
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

fn flush_thread(flushing: impl Future<Output = ()> + Send + 'static) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    std::thread::Builder::new().name("log-flush".into()).spawn(move || runtime.block_on(flushing))
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(flusher) = self.flusher.take() {
            // A panic of the thread was reported when it happened.
            let _ = flusher.join();
        }
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
        Ok(self.shared().read().log_state().vote().map(|vote| vote.0))
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
        self.shared().change(|log| log.save_vote(StoredVote(*vote)))?;
        self.ask(|answer| Job::Vote(*vote, answer)).await
    }

    /// Best effort, and not flushed: the next append carries it.
    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let Some(committed) = committed.map(StoredLogId) else { return Ok(()) };
        self.shared().change(|log| {
            let state = log.log_state();
            // raft-log takes an id that isn't newer, or that the log doesn't reach, for an error, and openraft
            // takes an error for the end.
            let is_news = Some(&committed) > state.committed() && Some(&committed) <= state.last();
            if is_news { log.commit(committed).map(|_| ()) } else { Ok(()) }
        })
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.shared().read().log_state().committed().map(|id| id.0))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let waiting = Waiting::new(callback);
        let mut appended = 0;
        let records = entries.into_iter().map(|entry| {
            appended += 1;
            (StoredLogId(entry.log_id), Payload(Arc::new(entry.payload)))
        });
        self.shared().change(|log| log.append(records))?;
        self.shared().stats.entries_appended.fetch_add(appended, Ordering::Relaxed);
        self.send(Job::Entries(waiting))
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> io::Result<()> {
        let kept = last_log_id.map(|id| id.index);
        let next = kept.map_or(0, |index| index + 1);
        if self.last_log_id().is_none_or(|last| last.index < next) {
            return Ok(());
        }
        self.ask(|answer| Job::Lower(kept, answer)).await?;
        self.shared().change(|log| log.truncate(next).map(|_| ()))
    }

    async fn purge(&mut self, log_id: LogId) -> io::Result<()> {
        let tail = open::tail_contradicting(&self.shared().read(), &log_id);
        if let Some(next) = tail {
            self.ask(|answer| Job::Lower(next.checked_sub(1), answer)).await?;
        }
        self.shared().change(|log| open::purge(log, tail, log_id))?;
        self.send(Job::Purged)
    }
}
