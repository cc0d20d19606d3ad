//! The callbacks that wait for a flush.

use std::io;
use std::sync::mpsc::SyncSender;

use openraft::storage::IOFlushed;

use crate::raft_types::TypeConfig;

/// A callback of openraft that waits for its entries to be flushed. It gets exactly one result, even if this is
/// dropped: raft-log drops everything queued behind a failed flush, and openraft would otherwise wait forever.
pub(super) struct PendingFlush(Option<IOFlushed<TypeConfig>>);

impl PendingFlush {
    pub(super) fn new(callback: IOFlushed<TypeConfig>) -> PendingFlush {
        PendingFlush(Some(callback))
    }

    pub(super) fn complete(mut self, result: io::Result<()>) {
        if let Some(callback) = self.0.take() {
            callback.io_completed(result);
        }
    }
}

impl Drop for PendingFlush {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            callback.io_completed(Err(io::Error::other("the log was closed before this was flushed")));
        }
    }
}

/// All callbacks of one flush, oldest first. The flush task gets the result after them.
pub(super) struct FlushGroup {
    pub(super) pending: Vec<PendingFlush>,
    pub(super) done: SyncSender<io::Result<()>>,
}

impl raft_log::Callback for FlushGroup {
    fn send(self, result: io::Result<()>) {
        complete_all(self.pending, &result);
        // Sending fails only if the flush task has ended, which means that the whole log is being dropped.
        let _ = SyncSender::send(&self.done, result);
    }
}

/// Gives every callback the same result.
pub(super) fn complete_all(pending: Vec<PendingFlush>, result: &io::Result<()>) {
    for one in pending {
        one.complete(match result {
            Ok(()) => Ok(()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        });
    }
}

#[cfg(test)]
mod tests;
