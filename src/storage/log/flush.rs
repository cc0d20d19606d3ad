//! The one task through which everything reaches the log's disk. It has a thread of its own, since flushing blocks.
//!
//! It takes all that wait, flushes once for them, and repeats; so the number of entries that share a flush grows
//! with the load, and nobody waits for a timer. (raft-log's own batching adds its wait to every flush, and
//! without a wait it flushes once for each append.) Votes go through the same queue, so that the order of votes
//! and entries on the disk is the order in which raft gave them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tokio::time::Instant;

use raft_log::api::raft_log_writer::RaftLogWriter;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use super::super::error::StorageError;
use super::pending::{FlushGroup, PendingFlush, complete_all};
use super::shared::Shared;
use super::watermark::{Watermark, WatermarkFile};
use crate::raft_types::Vote;

/// How far the noted index may be behind, in time. Each write of the watermark costs three flushes.
const RAISE_EVERY: Duration = Duration::from_secs(1);

/// What waits for the flush thread.
pub(super) enum Job {
    /// Entries are in the log's buffer.
    Entries(PendingFlush),
    /// A vote is in the log's buffer. It is answered once log and watermark have it.
    Vote(Vote, oneshot::Sender<io::Result<()>>),
    /// The log is about to be cut off after this index (`None`: from its start).
    LowerWatermark(Option<u64>, oneshot::Sender<io::Result<()>>),
    /// A purge is in the log's buffer; flushing it frees the files that it made superfluous.
    Purged,
}

/// What comes next.
enum Next {
    Job(Job),
    /// Nothing, but the watermark is due.
    WatermarkDue,
    /// Nothing any more.
    Closed,
}

pub(super) struct Flusher {
    shared: Arc<Shared>,
    jobs: UnboundedReceiver<Job>,
    watermark: WatermarkFile,
    /// What the watermark could say by now.
    flushed: Watermark,
    raised_at: Instant,
}

impl Flusher {
    pub(super) fn new(shared: Arc<Shared>, jobs: UnboundedReceiver<Job>, watermark: WatermarkFile) -> Flusher {
        let flushed = watermark.written().clone();
        Flusher { shared, jobs, watermark, flushed, raised_at: Instant::now() }
    }

    /// Serves until every handle of the log is dropped.
    pub(super) async fn run(mut self) {
        loop {
            match self.next_job().await {
                Next::Job(job) => self.serve(job).await,
                Next::WatermarkDue => {}
                Next::Closed => break,
            }
            if self.is_behind() && self.raised_at.elapsed() >= RAISE_EVERY {
                self.raise_watermark();
            }
        }
        // What was never waited for, such as the committed id, is brought to the disk as well.
        self.flush(Vec::new()).await;
        if self.is_behind() {
            self.raise_watermark();
        }
    }

    async fn next_job(&mut self) -> Next {
        let received = if self.is_behind() {
            tokio::time::timeout_at(self.raised_at + RAISE_EVERY, self.jobs.recv()).await
        } else {
            Ok(self.jobs.recv().await)
        };
        match received {
            Ok(Some(job)) => Next::Job(job),
            Ok(None) => Next::Closed,
            Err(_) => Next::WatermarkDue,
        }
    }

    async fn serve(&mut self, first: Job) {
        let mut pending = Vec::new();
        let mut needs_flush = false;
        let mut next = Some(first);
        // A vote or a truncation ends the group: both touch the watermark, and who comes later must be
        // answered later.
        let last = loop {
            match next {
                Some(Job::Entries(one)) => pending.push(one),
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
            Some(Job::Vote(vote, answer)) => {
                let watermark = Watermark { vote: Some(vote), ..self.flushed.clone() };
                let _ = answer.send(self.write_watermark(watermark));
            }
            Some(Job::LowerWatermark(last_index, answer)) => {
                let kept = last_index.min(self.flushed.last_index);
                let _ = answer.send(self.write_watermark(Watermark { last_index: kept, ..self.flushed.clone() }));
            }
            Some(Job::Entries(_) | Job::Purged) | None => {}
        }
    }

    /// Flushes what is in the log's buffer, and answers those who wait for it.
    async fn flush(&mut self, pending: Vec<PendingFlush>) {
        if let Some(duration) = self.shared.dir.disk().stall() {
            tokio::time::sleep(duration).await;
        }
        if let Some(failure) = self.shared.failure() {
            complete_all(pending, &Err(failure.into()));
            return;
        }
        let (done, flushed) = sync_channel(1);
        let syncs_itself = self.shared.dir.disk().log_syncs_itself();
        let (result, is_new, held) = {
            let mut log = self.shared.log.write();
            self.flushed.last_index = log.log_state().last().map(|last| last.0.index);
            self.flushed.open_chunk = *log.stat().open_chunk.chunk_id;
            // Nothing in a new file is acknowledged before the watermark knows that the file exists; otherwise
            // its loss would look like a log that never had it.
            let is_new = self.flushed.open_chunk > self.watermark.written().open_chunk;
            let later = is_new || !syncs_itself;
            let (held, pending) = if later { (pending, Vec::new()) } else { (Vec::new(), pending) };
            (log.flush(syncs_itself, Some(FlushGroup { pending, done })), is_new, held)
        };
        // A callback that is dropped, on either way, is a flush that did not happen.
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
        complete_all(held, &result);
    }

    fn is_behind(&self) -> bool {
        self.shared.failure().is_none() && self.flushed != *self.watermark.written()
    }

    fn raise_watermark(&mut self) {
        // A failure is kept, and told to whoever waits for one and to whoever writes next.
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
