//! A snapshot on its way from one node to another: its head as one frame, then its file, byte for byte.
//!
//! Both directions are here. The file is checked after its last byte, by `storage`.

use std::io;

use futures::{Stream, StreamExt, stream};

use super::messages::SnapshotHead;
use crate::codec::{self, CodecError};

/// The largest snapshot file that is accepted: ten million leases of a few hundred bytes.
pub const SNAPSHOT_BYTES_MAX: u64 = 4 << 30;

/// The largest head that is accepted. It holds the names and addresses of the cluster's members.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// Why a snapshot did not arrive whole.
#[derive(Debug, thiserror::Error)]
pub enum BrokenSnapshot {
    /// The connection failed.
    #[error(transparent)]
    Interrupted(#[from] io::Error),
    /// The stream ended before the head was complete.
    #[error("it ends within its head")]
    EndsInHead,
    /// The head is damaged, or of an unknown format.
    #[error(transparent)]
    Head(CodecError),
    /// The file is larger than 4 GiB.
    #[error("it is larger than {SNAPSHOT_BYTES_MAX} bytes")]
    TooLarge,
}

/// The body of a snapshot message.
///
/// # Errors
/// If the head is too large for one frame.
pub fn write_snapshot(
    head: &SnapshotHead,
    file: impl Stream<Item = io::Result<Vec<u8>>> + Send + 'static,
) -> Result<reqwest::Body, CodecError> {
    let head = codec::encode(head)?;
    Ok(reqwest::Body::wrap_stream(stream::iter([Ok(head)]).chain(file)))
}

/// Reads the head of a snapshot message, and gives the pieces of the file that follow it.
pub async fn read_snapshot<Chunk: Into<Vec<u8>>>(
    mut body: impl Stream<Item = io::Result<Chunk>> + Unpin,
) -> Result<(SnapshotHead, impl Stream<Item = Result<Vec<u8>, BrokenSnapshot>> + Unpin), BrokenSnapshot> {
    let mut start = Vec::new();
    let (head, head_bytes) = loop {
        let chunk = body.next().await.ok_or(BrokenSnapshot::EndsInHead)??;
        start.extend(chunk.into());
        let mut rest = start.as_slice();
        match codec::read_from::<SnapshotHead>(&mut rest) {
            Ok(head) => break (head, start.len() - rest.len()),
            // Only a part of the head has arrived.
            Err(CodecError::Io(_)) if start.len() < HEAD_BYTES_MAX => {}
            Err(error) => return Err(BrokenSnapshot::Head(error)),
        }
    };
    let start_of_file = start.split_off(head_bytes);
    let mut bytes = 0_u64;
    let file = stream::iter([Ok(start_of_file)]).chain(body.map(|chunk| chunk.map(Into::into)));
    let file = file.map(move |chunk: io::Result<Vec<u8>>| {
        let chunk = chunk?;
        bytes += chunk.len() as u64;
        if bytes > SNAPSHOT_BYTES_MAX { Err(BrokenSnapshot::TooLarge) } else { Ok(chunk) }
    });
    Ok((head, file))
}

#[cfg(test)]
mod fuzz_tests;
