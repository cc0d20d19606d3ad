//! Who waits for a flush, and what raft-log calls when it is done.

use std::io;
use std::sync::mpsc::SyncSender;

use openraft::storage::IOFlushed;

use crate::raft_types::TypeConfig;

/// Somebody in openraft who waits for entries to be flushed. It hears of success, of failure, and of being
/// forgotten: raft-log drops what waits behind a failed flush, and openraft would wait for ever.
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

/// All who wait for one flush, in the order in which they came, and then the flush thread.
pub(super) struct FlushGroup {
    pub(super) pending: Vec<PendingFlush>,
    pub(super) done: SyncSender<io::Result<()>>,
}

impl raft_log::Callback for FlushGroup {
    fn send(self, result: io::Result<()>) {
        complete_all(self.pending, &result);
        // The flush thread may be gone only when the whole log is being dropped.
        let _ = SyncSender::send(&self.done, result);
    }
}

/// Tells everybody the same.
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
