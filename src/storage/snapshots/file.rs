//! The format of a snapshot file: writes one, and reads and checks one.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::super::error::StorageError;
use super::super::files;
use crate::codec::{self, CodecError};
use crate::domain::{Counters, Lease, RoomId, Rooms};
use crate::raft_types::SnapshotMeta;

pub(super) const THING: &str = "snapshot";
/// The first field of every snapshot: a fixed text, and the format of the file as a whole.
const MAGIC: &str = "quorate snapshot ";
const SNAPSHOT_FORMAT: u8 = 1;
const DIGEST_BYTES: u64 = 32;

/// A complete snapshot on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Its path. The file is removed when there is a newer snapshot, but a reader that has opened it can finish.
    pub path: PathBuf,
    /// The cluster whose state it contains.
    pub cluster_id: Option<Uuid>,
    /// The last entry and the membership that it covers.
    pub meta: SnapshotMeta,
    /// The size of the file.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    magic: String,
    pub(super) cluster_id: Option<Uuid>,
    pub(super) meta: SnapshotMeta,
    pub(super) counters: Counters,
    pub(super) leases: u64,
}

impl Header {
    pub(super) fn new(cluster_id: Option<Uuid>, meta: SnapshotMeta, counters: Counters, leases: u64) -> Header {
        Header { magic: format!("{MAGIC}{SNAPSHOT_FORMAT}"), cluster_id, meta, counters, leases }
    }
}

impl SnapshotFile {
    pub(super) fn is_newer_than(&self, other: &SnapshotFile) -> bool {
        self.meta.last_log_id > other.meta.last_log_id
    }

    /// Index and raft term of the last entry that it covers, as in the file's name.
    pub(super) fn position(&self) -> (u64, u64) {
        self.meta.last_log_id.map_or((0, 0), |id| (id.index, id.leader_id.term))
    }
}

pub(super) fn write(
    path: &Path,
    header: &Header,
    leases: impl Iterator<Item = (RoomId, Lease)>,
) -> Result<File, CodecError> {
    let mut hashing = Hashing { inner: BufWriter::new(files::create_file(path)?), hash: Sha256::new() };
    codec::write_to(header, &mut hashing)?;
    let mut written = 0;
    for lease in leases {
        codec::write_to(&lease, &mut hashing)?;
        written += 1;
    }
    assert_eq!(written, header.leases, "an ExactSizeIterator yields as many leases as its length");
    let digest = hashing.hash.finalize();
    hashing.inner.write_all(&digest)?;
    Ok(hashing.inner.into_inner().map_err(io::IntoInnerError::into_error)?)
}

/// Reads a whole snapshot and checks it.
pub(super) fn read(path: &Path) -> Result<(SnapshotFile, Rooms), StorageError> {
    let (snapshot, counters, leases) = read_content(path)?;
    Ok((snapshot, Rooms::restore(counters, leases)))
}

pub(super) type Content = (SnapshotFile, Counters, Vec<(RoomId, Lease)>);

pub(super) fn read_content(path: &Path) -> Result<Content, StorageError> {
    let damaged = |why: &str| StorageError::damaged(THING, path, why);
    let (file, bytes) = open(path)?;
    let content = BufReader::new(file).take(bytes.saturating_sub(DIGEST_BYTES));
    let mut hashing = Hashing { inner: content, hash: Sha256::new() };
    let header = read_header(&mut hashing, path)?;
    let mut leases: Vec<(RoomId, Lease)> = Vec::new();
    for _ in 0..header.leases {
        let lease: (RoomId, Lease) = codec::read_from(&mut hashing).map_err(StorageError::decode(THING, path))?;
        if leases.last().is_some_and(|(before, _)| *before >= lease.0) {
            return Err(damaged("its rooms are not in ascending order"));
        }
        leases.push(lease);
    }
    if hashing.inner.limit() > 0 {
        return Err(damaged("it has more data after its last lease"));
    }
    let mut digest = [0; DIGEST_BYTES as usize];
    hashing.inner.into_inner().read_exact(&mut digest).map_err(StorageError::io(THING, "read", path))?;
    if *hashing.hash.finalize() != digest {
        return Err(damaged("its SHA-256 does not match"));
    }
    let snapshot = SnapshotFile { path: path.to_owned(), cluster_id: header.cluster_id, meta: header.meta, bytes };
    Ok((snapshot, header.counters, leases))
}

fn open(path: &Path) -> Result<(File, u64), StorageError> {
    File::open(path)
        .and_then(|file| {
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        })
        .map_err(StorageError::io(THING, "open", path))
}

fn read_header(reader: &mut impl Read, path: &Path) -> Result<Header, StorageError> {
    let header: Header = codec::read_from(reader).map_err(StorageError::decode(THING, path))?;
    match header.magic.strip_prefix(MAGIC).and_then(|format| format.parse().ok()) {
        Some(found) => codec::check_format(found, SNAPSHOT_FORMAT).map_err(StorageError::decode(THING, path))?,
        None => return Err(StorageError::damaged(THING, path, "it is not a snapshot of quorate")),
    }
    Ok(header)
}

/// How many bytes of a snapshot are read and sent at a time.
const CHUNK_BYTES: usize = 64 << 10;

pub(super) fn read_chunk(mut file: &File) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let read = file.read(&mut chunk)?;
    chunk.truncate(read);
    Ok(chunk)
}

/// A reader or writer that also hashes every byte.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.hash.update(&bytes[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod fuzz_tests;
