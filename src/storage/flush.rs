//! The one thread through which everything reaches the log's disk.
//!
//! It takes all that wait, flushes once for them, and repeats; so the number of entries that share a flush grows
//! with the load, and nobody waits for a timer. (raft-log's own batching adds its wait to every flush, and
//! without a wait it flushes once for each append.) Votes go through the same queue, so that the order of votes
//! and entries on the disk is the order in which raft gave them.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use raft_log::api::raft_log_writer::RaftLogWriter;
use tokio::sync::oneshot;

use super::StorageError;
use super::files::Durability;
use super::log_store::Shared;
use super::log_types::{FlushGroup, Waiting, answer_all};
use super::watermark::{Watermark, WatermarkFile};
use crate::raft_types::Vote;

/// How far the noted index may be behind, in time. Each write of the watermark costs three flushes.
const RAISE_EVERY: Duration = Duration::from_secs(1);

/// What waits for the flush thread.
pub(super) enum Job {
    /// Entries are in the log's buffer.
    Entries(Waiting),
    /// A vote is in the log's buffer. It is answered once log and watermark have it.
    Vote(Vote, oneshot::Sender<io::Result<()>>),
    /// The log is about to be cut off after this index (`None`: from its start).
    Lower(Option<u64>, oneshot::Sender<io::Result<()>>),
    /// A purge is in the log's buffer; flushing it frees the files that it made superfluous.
    Purged,
}

pub(super) struct Flusher {
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
    watermark: WatermarkFile,
    /// What the watermark could say by now.
    flushed: Watermark,
    raised_at: Instant,
}

impl Flusher {
    pub(super) fn new(shared: Arc<Shared>, jobs: Receiver<Job>, watermark: WatermarkFile) -> Flusher {
        let flushed = watermark.written().clone();
        Flusher { shared, jobs, watermark, flushed, raised_at: Instant::now() }
    }

    /// Serves until every handle of the log is dropped.
    pub(super) fn run(mut self) {
        loop {
            match self.next_job() {
                Ok(job) => self.serve(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.is_behind() && self.raised_at.elapsed() >= RAISE_EVERY {
                self.raise_watermark();
            }
        }
        // What was never waited for, such as the committed id, is brought to the disk as well.
        self.flush(Vec::new());
        if self.is_behind() {
            self.raise_watermark();
        }
    }

    fn next_job(&self) -> Result<Job, RecvTimeoutError> {
        if self.is_behind() {
            self.jobs.recv_timeout(RAISE_EVERY.saturating_sub(self.raised_at.elapsed()))
        } else {
            self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
        }
    }

    fn serve(&mut self, first: Job) {
        let mut waiting = Vec::new();
        let mut needs_flush = false;
        let mut next = Some(first);
        // A vote or a truncation ends the group: both touch the watermark, and who comes later must be
        // answered later.
        let last = loop {
            match next {
                Some(Job::Entries(one)) => waiting.push(one),
                Some(Job::Purged) => {}
                last => break last,
            }
            needs_flush = true;
            next = self.jobs.try_recv().ok();
        };
        if needs_flush || matches!(last, Some(Job::Vote(..))) {
            self.flush(waiting);
        }
        match last {
            Some(Job::Vote(vote, answer)) => {
                let watermark = Watermark { vote: Some(vote), ..self.flushed.clone() };
                let _ = answer.send(self.write_watermark(watermark));
            }
            Some(Job::Lower(last_index, answer)) => {
                let kept = last_index.min(self.flushed.last_index);
                let _ = answer.send(self.write_watermark(Watermark { last_index: kept, ..self.flushed.clone() }));
            }
            Some(Job::Entries(_) | Job::Purged) | None => {}
        }
    }

    /// Flushes what is in the log's buffer, and answers those who wait for it.
    fn flush(&mut self, waiting: Vec<Waiting>) {
        if let Some(failure) = self.shared.failure() {
            answer_all(waiting, &Err(failure.into()));
            return;
        }
        let started_at = Instant::now();
        let (done, flushed) = sync_channel(1);
        let (result, held) = {
            let mut log = self.shared.log.write().unwrap_or_else(PoisonError::into_inner);
            self.flushed.last_index = log.log_state().last().map(|last| last.0.index);
            self.flushed.open_chunk = *log.stat().open_chunk.chunk_id;
            // Nothing in a new file is acknowledged before the watermark knows that the file exists; otherwise
            // its loss would look like a log that never had it.
            let is_new = self.flushed.open_chunk > self.watermark.written().open_chunk;
            let (held, waiting) = if is_new { (waiting, Vec::new()) } else { (Vec::new(), waiting) };
            let sync = self.shared.dir.durability() == Durability::Fsync;
            (log.flush(sync, Some(FlushGroup { waiting, done })), held)
        };
        // A callback that is dropped, on either way, is a flush that did not happen.
        let result = result.and_then(|()| {
            flushed.recv().unwrap_or_else(|_| Err(io::Error::other("the log's writer has stopped before this flush")))
        });
        self.shared.stats.flushes.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(started_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.stats.last_flush_micros.store(micros, Ordering::Relaxed);
        let result = match result {
            Ok(()) if held.is_empty() => Ok(()),
            Ok(()) => self.write_watermark(self.flushed.clone()),
            Err(error) => {
                self.shared.fail(&error.to_string());
                Err(error)
            }
        };
        answer_all(held, &result);
    }

    fn is_behind(&self) -> bool {
        self.shared.failure().is_none() && self.flushed != *self.watermark.written()
    }

    fn raise_watermark(&mut self) {
        // A failure is kept, and told to whoever writes next.
        let _ = self.write_watermark(self.flushed.clone());
    }

    fn write_watermark(&mut self, watermark: Watermark) -> io::Result<()> {
        if let Some(failure) = self.shared.failure() {
            return Err(failure.into());
        }
        self.raised_at = Instant::now();
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
