//! The records of the log, as bytes.
//!
//! If a decoder returns `UnexpectedEof` in the last file, raft-log assumes that a crash cut off the write, and drops
//! the record. So a damaged byte must never cause that error: ids have a fixed size, and the length of a payload has a
//! checksum of its own (`codec`).
//!
//! An id or a vote has no format byte of its own, because no checksum would protect it before raft-log acts on it. The
//! log as a whole has one, [`LOG_FORMAT`].

use std::io::{self, Read, Write};
use std::sync::Arc;

use raft_log::codeq::{Decode, Encode};

use super::pending::FlushGroup;
use crate::codec;
use crate::raft_types::{EntryPayload, LogId, Vote};

/// The format of everything in the log except the payloads, which are frames: ids, votes, and the records of raft-log.
/// Raise it when any of these bytes change.
///
/// The watermark stores it, so that it is known before raft-log opens the log. raft-log removes what it takes for a
/// write that a crash cut off, and a newer record could look like that.
pub(super) const LOG_FORMAT: u8 = 1;

/// Tells raft-log which types it stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LogTypes;

impl raft_log::Types for LogTypes {
    type LogId = StoredLogId;
    type LogPayload = Payload;
    type Vote = StoredVote;
    type Callback = FlushGroup;
    type UserData = ();

    fn log_index(log_id: &StoredLogId) -> u64 {
        log_id.0.index
    }

    fn payload_size(payload: &Payload) -> u64 {
        payload.approximate_bytes()
    }
}

/// A log id as 16 bytes: raft term and index, big endian.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredLogId(pub(super) LogId);

impl Encode for StoredLogId {
    fn encode<W: Write>(&self, mut w: W) -> io::Result<usize> {
        w.write_all(&self.0.leader_id.term.to_be_bytes())?;
        w.write_all(&self.0.index.to_be_bytes())?;
        Ok(16)
    }
}

impl Decode for StoredLogId {
    fn decode<R: Read>(mut r: R) -> io::Result<Self> {
        let raft_term = read_u64(&mut r)?;
        Ok(StoredLogId(LogId { leader_id: raft_term.into(), index: read_u64(&mut r)? }))
    }
}

/// A vote as 17 bytes: raft term, node, and whether a majority granted it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd)]
pub(super) struct StoredVote(pub(super) Vote);

impl Encode for StoredVote {
    fn encode<W: Write>(&self, mut w: W) -> io::Result<usize> {
        w.write_all(&self.0.leader_id.term.to_be_bytes())?;
        w.write_all(&self.0.leader_id.voted_for.to_be_bytes())?;
        w.write_all(&[u8::from(self.0.committed)])?;
        Ok(17)
    }
}

impl Decode for StoredVote {
    fn decode<R: Read>(mut r: R) -> io::Result<Self> {
        let (raft_term, voted_for) = (read_u64(&mut r)?, read_u64(&mut r)?);
        let mut committed = [0];
        r.read_exact(&mut committed)?;
        match committed {
            [0] => Ok(StoredVote(Vote::new(raft_term, voted_for))),
            [1] => Ok(StoredVote(Vote::new_committed(raft_term, voted_for))),
            [other] => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a vote has the flag {other}, which is neither 0 nor 1"),
            )),
        }
    }
}

fn read_u64(mut r: impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    r.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}

/// The content of an entry. It is shared, because raft-log's cache clones it.
#[derive(Debug, Clone)]
pub(super) struct Payload(pub(super) Arc<EntryPayload>);

impl Payload {
    /// About how many bytes this takes in memory and on the wire.
    pub(super) fn approximate_bytes(&self) -> u64 {
        /// Numbers, hashes, tags and checksums. An entry with 64 bytes of text takes about 180.
        const FIXED_BYTES: usize = 128;
        /// A member's id, name and two addresses.
        const MEMBER_BYTES: usize = 256;
        let text_bytes = match &*self.0 {
            EntryPayload::Blank => 0,
            EntryPayload::Membership(membership) => membership.nodes().count() * MEMBER_BYTES,
            EntryPayload::Normal(command) => command.text_bytes(),
        };
        (FIXED_BYTES + text_bytes) as u64
    }
}

impl Encode for Payload {
    fn encode<W: Write>(&self, w: W) -> io::Result<usize> {
        Ok(codec::write_to(&*self.0, w)?)
    }
}

impl Decode for Payload {
    fn decode<R: Read>(r: R) -> io::Result<Self> {
        Ok(Payload(Arc::new(codec::read_from(r)?)))
    }
}

#[cfg(test)]
mod fuzz_tests;

#[cfg(test)]
mod tests;
