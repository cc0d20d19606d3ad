//! The task that flushes the log while a node runs. It has a thread of its own, because flushing blocks.
//!
//! The task takes all queued jobs, flushes once for them, and repeats. So more entries share a flush as the load grows,
//! and no job waits for a timer. (raft-log's own batching would add its wait to every flush, or without a wait flush
//! once for each append.) Votes use the same queue, so that votes and entries reach the disk in the order in which
//! openraft gave them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use raft_log::api::raft_log_writer::RaftLogWriter;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::error::StorageError;
use super::pending::{FlushGroup, PendingFlush, complete_all};
use super::shared::Shared;
use super::watermark::{Watermark, WatermarkFile};
use crate::raft_types::Vote;

/// How long the index in the watermark may lag behind the log. It isn't written more often, because each write flushes
/// a file and its folder.
const WATERMARK_LAG_MAX: Duration = Duration::from_secs(1);

/// A job for the flush task.
pub(super) enum Job {
    /// Flush entries that are in the log's buffer.
    Entries(PendingFlush),
    /// Flush a vote that is in the log's buffer. It is done when the log and the watermark have it.
    Vote(Vote, oneshot::Sender<io::Result<()>>),
    /// Lower the watermark to this index, because the log is about to be truncated after it. With `None`, all entries
    /// are about to be removed.
    LowerWatermark(Option<u64>, oneshot::Sender<io::Result<()>>),
    /// Flush a purge that is in the log's buffer. raft-log then removes the files that are no longer needed.
    Purged,
}

/// Why the flush task woke up.
enum Next {
    Job(Job),
    /// No job came in time, and the watermark must be written.
    WatermarkDue,
    /// Every handle of the log was dropped.
    Closed,
}

/// The flush task.
pub(super) struct Flusher {
    shared: Arc<Shared>,
    jobs: UnboundedReceiver<Job>,
    watermark: WatermarkFile,
    /// The highest watermark that the flushed log allows.
    flushed: Watermark,
    watermark_written_at: Instant,
}

impl Flusher {
    pub(super) fn new(shared: Arc<Shared>, jobs: UnboundedReceiver<Job>, watermark: WatermarkFile) -> Flusher {
        let flushed = watermark.written().clone();
        Flusher { shared, jobs, watermark, flushed, watermark_written_at: Instant::now() }
    }

    /// Runs until every handle of the log is dropped.
    pub(super) async fn run(mut self) {
        loop {
            match self.next_job().await {
                Next::Job(job) => self.serve(job).await,
                Next::WatermarkDue => {}
                Next::Closed => break,
            }
            if self.is_behind() && self.watermark_written_at.elapsed() >= WATERMARK_LAG_MAX {
                self.raise_watermark();
            }
        }
        // This also flushes what no job waits for, such as the committed id.
        self.flush(Vec::new()).await;
        if self.is_behind() {
            self.raise_watermark();
        }
    }

    async fn next_job(&mut self) -> Next {
        let next = if self.is_behind() {
            tokio::time::timeout_at(self.watermark_written_at + WATERMARK_LAG_MAX, self.jobs.recv()).await
        } else {
            Ok(self.jobs.recv().await)
        };
        match next {
            Ok(Some(job)) => Next::Job(job),
            Ok(None) => Next::Closed,
            Err(_) => Next::WatermarkDue,
        }
    }

    async fn serve(&mut self, first: Job) {
        let mut pending = Vec::new();
        let mut needs_flush = false;
        let mut next = Some(first);
        // A vote or a truncation ends the group, because both write the watermark. Jobs behind it must wait.
        let last = loop {
            match next {
                Some(Job::Entries(entries)) => pending.push(entries),
                Some(Job::Purged) => {}
                last => break last,
            }
            needs_flush = true;
            next = self.jobs.try_recv().ok();
        };
        if needs_flush || matches!(last, Some(Job::Vote(..))) {
            self.flush(pending).await;
        }
        match last {
            Some(Job::Vote(vote, done)) => {
                let watermark = Watermark { vote: Some(vote), ..self.flushed.clone() };
                let _ = done.send(self.write_watermark(watermark));
            }
            Some(Job::LowerWatermark(last_index, done)) => {
                let kept = last_index.min(self.flushed.last_index);
                let _ = done.send(self.write_watermark(Watermark { last_index: kept, ..self.flushed.clone() }));
            }
            Some(Job::Entries(_) | Job::Purged) | None => {}
        }
    }

    /// Flushes the log's buffer, and reports the result to every pending entry.
    async fn flush(&mut self, pending: Vec<PendingFlush>) {
        if let Some(duration) = self.shared.dir.disk().stall() {
            tokio::time::sleep(duration).await;
        }
        if let Some(failure) = self.shared.failure() {
            return complete_all(pending, &Err(failure.into()));
        }
        let (done, flushed) = sync_channel(1);
        let syncs_itself = self.shared.dir.disk().log_syncs_itself();
        let (result, is_new, at_end) = {
            let mut log = self.shared.log.write();
            self.flushed.last_index = log.log_state().last().map(|last| last.0.index);
            self.flushed.open_chunk = *log.stat().open_chunk.chunk_id;
            // Nothing in a new file is acknowledged before the watermark knows the file. Otherwise, if the file were
            // lost, the log would look as if it never had one.
            let is_new = self.flushed.open_chunk > self.watermark.written().open_chunk;
            // raft-log completes `at_once` when it has flushed. The others need the watermark, or the disk's own flush.
            let (at_once, at_end) = if is_new || !syncs_itself { (Vec::new(), pending) } else { (pending, Vec::new()) };
            (log.flush(syncs_itself, Some(FlushGroup { pending: at_once, done })), is_new, at_end)
        };
        // If the callback was dropped, the flush did not happen.
        let result = result.and_then(|()| {
            flushed.recv().unwrap_or_else(|_| Err(io::Error::other("the log's writer has stopped before this flush")))
        });
        let result = result.and_then(|()| self.shared.dir.disk().log_written(&self.shared.dir.join("log")));
        self.shared.count_flush();
        let result = match result {
            Ok(()) if is_new => self.write_watermark(self.flushed.clone()),
            Ok(()) => Ok(()),
            Err(error) => {
                self.shared.fail(&error.to_string());
                Err(error)
            }
        };
        complete_all(at_end, &result);
    }

    fn is_behind(&self) -> bool {
        self.shared.failure().is_none() && self.flushed != *self.watermark.written()
    }

    fn raise_watermark(&mut self) {
        // `Shared` keeps a failure: `LogStore::failed` returns it, and so does the next write.
        let _ = self.write_watermark(self.flushed.clone());
    }

    fn write_watermark(&mut self, watermark: Watermark) -> io::Result<()> {
        if let Some(failure) = self.shared.failure() {
            return Err(failure.into());
        }
        self.watermark_written_at = Instant::now();
        match self.watermark.write(watermark.clone()) {
            Ok(()) => {
                self.flushed = watermark;
                Ok(())
            }
            Err(error) => {
                self.shared.fail(&error.to_string());
                Err(StorageError::into(error))
            }
        }
    }
}
