//! Opens the raft log: checks that it is whole, and that it fits the watermark and the newest snapshot.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use raft_log::RaftLog;
use raft_log::api::raft_log_writer::RaftLogWriter;

use super::super::data_dir::DataDir;
use super::super::disk::Disk;
use super::super::error::StorageError;
use super::super::files;
use super::pending::FlushGroup;
use super::types::{LogTypes, StoredLogId, StoredVote};
use super::watermark::{self, Watermark, WatermarkFile};
use crate::codec;
use crate::raft_types::LogId;
use crate::raft_types::numbers::{Implausible, check_log_id, check_vote};

const THING: &str = "log";

/// Checks the format of the log, without a change to any file. The payloads are frames, and are checked by [`open`].
pub(super) fn check_format(dir: &DataDir) -> Result<(), StorageError> {
    watermark::read(dir).map(drop)
}

/// Opens the log and its watermark, and finishes a purge that a crash cut off.
pub(super) fn open(
    dir: &Arc<DataDir>,
    chunk_bytes: usize,
    snapshot: Option<LogId>,
) -> Result<(RaftLog<LogTypes>, WatermarkFile), StorageError> {
    let path = dir.join("log");
    let exists = path.exists() && !files::names_in(THING, &path)?.is_empty();
    let mut watermark = WatermarkFile::open(dir.clone(), exists)?;
    dir.folder(THING, "log")?;

    let config = Arc::new(config(&path, chunk_bytes));
    let is_locked = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    let mut log = files::take_lock(is_locked, || RaftLog::open(config.clone())).map_err(failure(&path))?;
    check_numbers(&log).map_err(|why| StorageError::damaged(THING, &path, why.to_string()))?;
    check_whole(&log, &path)?;
    check_watermark(&log, watermark.written(), &path)?;
    if let Some(snapshot) = snapshot {
        finish_installation(&mut log, &mut watermark, snapshot, &path)?;
    }
    // A killed process leaves entries that were written but not flushed. openraft assumes that everything it can read
    // is flushed, so it is flushed here.
    flush(&mut log, &path, dir.disk()).map_err(StorageError::io(THING, "flush", &path))?;
    Ok((log, watermark))
}

fn config(path: &Path, chunk_bytes: usize) -> raft_log::Config {
    let mut config = raft_log::Config::new(path.display());
    // Entries of the file that is being written stay in memory. When the next file begins, they are all evicted at
    // once, under the log's lock. So the file size limits memory and latency.
    config.wal.chunk_max_size = Some(chunk_bytes);
    config.wal.chunk_max_records = Some(100_000);
    config.wal.read_buffer_size = Some(1 << 20);
    // Without this, the log would not open after a crash during a write.
    config.wal.truncate_incomplete_record = Some(true);
    // The flush task collects entries already. A wait here would only be added to each flush.
    config.wal.flush_batch_wait = Some(std::time::Duration::ZERO);
    config.log_cache_capacity = Some(64 << 20);
    config.log_cache_max_items = Some(50_000);
    config
}

/// Sorts the errors of raft-log: some kinds mean damage, and all others are failures of the operating system.
fn failure(path: &Path) -> impl FnOnce(io::Error) -> StorageError {
    move |error| match error.kind() {
        io::ErrorKind::Unsupported if error.to_string().starts_with(codec::NEWER) => {
            // Of a decoder's error, raft-log keeps only the kind and the text, and appends the place of the record.
            let text = error.to_string();
            let why = text.split("; when:").next().unwrap_or_default().to_owned();
            StorageError::Newer { thing: THING, path: path.to_owned(), why }
        }
        io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::Other => StorageError::damaged(THING, path, error.to_string()),
        _ => StorageError::io(THING, "open", path)(error),
    }
}

/// Checks that the stored numbers can be true. openraft would panic at numbers near the end of their range.
fn check_numbers(log: &RaftLog<LogTypes>) -> Result<(), Implausible> {
    let state = log.log_state();
    state.vote().map_or(Ok(()), |vote| check_vote(&vote.0))?;
    let log_ids = [state.purged(), state.committed(), state.last()];
    log_ids.into_iter().flatten().try_for_each(|log_id| check_log_id(&log_id.0))
}

/// Checks the first and the last entry. raft-log itself notices only a file that is missing in the middle of the log.
fn check_whole(log: &RaftLog<LogTypes>, path: &Path) -> Result<(), StorageError> {
    let state = log.log_state();
    let (purged, last) = (state.purged(), state.last());
    let damaged = |why: String| Err(StorageError::damaged(THING, path, why));
    let first = log.read(0, u64::MAX).next().transpose().map_err(failure(path))?.map(|(id, _)| id.0.index);
    let expected = purged.map_or(0, |id| id.0.index + 1);
    if let Some(first) = first.filter(|first| *first != expected) {
        return damaged(format!("it starts at entry {first}, but it should start at {expected}"));
    }
    if last.is_some_and(|last| log_id_at(log, last.0.index) != Some(last.0)) {
        return damaged(format!("its last entry should be {last:?}, but that entry is missing"));
    }
    Ok(())
}

fn check_watermark(log: &RaftLog<LogTypes>, watermark: &Watermark, path: &Path) -> Result<(), StorageError> {
    let state = log.log_state();
    let damaged = |why: String| Err(StorageError::damaged(THING, path, why));
    if let Some(vote) = watermark.vote
        && state.vote().is_none_or(|found| *found < StoredVote(vote) || found.partial_cmp(&StoredVote(vote)).is_none())
    {
        return damaged(format!("the vote {vote} was stored, but the log has {:?}", state.vote().map(|vote| vote.0)));
    }
    let last_index = state.last().map(|last| last.0.index);
    if last_index < watermark.last_index {
        return damaged(format!(
            "entries up to {:?} were stored, but the log ends at {last_index:?}",
            watermark.last_index
        ));
    }
    let open_chunk = *log.stat().open_chunk.chunk_id;
    if open_chunk < watermark.open_chunk {
        return damaged(format!("its file at offset {} is missing or empty", watermark.open_chunk));
    }
    Ok(())
}

/// Purges the log up to the newest snapshot. It does so if a crash came after a snapshot was received and before the
/// log was purged.
///
/// A snapshot contains only committed entries. So if the log is shorter or has other entries, the snapshot is right.
/// openraft would not start with such a log.
fn finish_installation(
    log: &mut RaftLog<LogTypes>,
    watermark: &mut WatermarkFile,
    snapshot: LogId,
    path: &Path,
) -> Result<(), StorageError> {
    let state = log.log_state();
    let is_covered = state.purged().is_some_and(|purged| purged.0.index > snapshot.index)
        || log_id_at(log, snapshot.index) == Some(snapshot);
    if is_covered {
        return Ok(());
    }
    let tail = tail_contradicting(log, &snapshot);
    if let Some(next) = tail {
        let kept = next.checked_sub(1).min(watermark.written().last_index);
        watermark.write(Watermark { last_index: kept, ..watermark.written().clone() })?;
    }
    purge(log, tail, snapshot).map_err(StorageError::io(THING, "purge", path))
}

/// The id of the entry at an index, or of the last purged entry if it was there.
pub(super) fn log_id_at(log: &RaftLog<LogTypes>, index: u64) -> Option<LogId> {
    let purged = log.log_state().purged().map(|id| id.0);
    if purged.is_some_and(|purged| purged.index == index) {
        return purged;
    }
    log.read(index, index.saturating_add(1)).next()?.ok().map(|(id, _)| id.0)
}

/// If the log contradicts the entry `upto`, returns the index at which it must be truncated before the purge.
///
/// A raft follower may have entries of a raft leader that was replaced before it could commit them. Then a snapshot of
/// the next raft leader may cover their indexes. openraft compares only the entry at the snapshot's index. raft-log
/// takes the id with the higher raft term as the log's end, so it would reject the next append.
pub(super) fn tail_contradicting(log: &RaftLog<LogTypes>, upto: &LogId) -> Option<u64> {
    let state = log.log_state();
    let contradicts = match log_id_at(log, upto.index) {
        Some(found) => found != *upto,
        None => state.last().is_some_and(|last| last.0.index < upto.index && last.0 > *upto),
    };
    let kept = [state.purged(), state.committed()].into_iter().flatten().map(|id| id.0.index).max();
    contradicts.then(|| kept.map_or(0, |index| index + 1))
}

/// Purges the log up to an entry. Before that, it truncates the log at index `tail`.
pub(super) fn purge(log: &mut RaftLog<LogTypes>, tail: Option<u64>, upto: LogId) -> io::Result<()> {
    if let Some(next) = tail {
        log.truncate(next)?;
    }
    RaftLogWriter::purge(log, StoredLogId(upto)).map(|_| ())
}

fn flush(log: &mut RaftLog<LogTypes>, path: &Path, disk: &dyn Disk) -> io::Result<()> {
    let (done, flushed) = sync_channel(1);
    log.flush(disk.log_syncs_itself(), Some(FlushGroup { pending: Vec::new(), done }))?;
    flushed.recv().unwrap_or_else(|_| Err(io::Error::other("the log's writer has stopped")))?;
    disk.log_written(path)
}
