//! Frames for the disk and for peers: one value with its length and checksums.
//!
//! No other file names bincode, which is no longer maintained (RUSTSEC-2025-0141). To replace it, add a new format byte
//! here, and keep reading the old one. A change of a stored or sent type needs a new format byte as well.
//!
//! ```text
//! frame = format byte (1) | payload length (u32, big endian) | CRC-32 of the five bytes before | payload | CRC-32 of the payload
//! ```
//!
//! The length has its own checksum. So a damaged length can be distinguished from a frame that was cut off. A damaged
//! length is an error. A frame that was cut off is the normal end of a log after a crash. The same checksum covers the
//! format byte, so that a damaged one is not taken for a newer format.

#![allow(clippy::disallowed_methods, reason = "this file is the only one that uses bincode")]

use std::cmp::Ordering;
use std::io::{self, Read, Write};

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The current format: bincode 1 with fixed-size integers, little endian.
pub const FORMAT: u8 = 1;

/// The largest payload of one frame. A raft message carries up to this much log. A lease has less than 6 KiB.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// The bytes of a frame around its payload.
pub const OVERHEAD_BYTES: usize = HEAD_BYTES + 4;

/// Begins the text of [`CodecError::Newer`].
pub const NEWER: &str = "a newer version of quorate";

const HEAD_BYTES: usize = 1 + 4 + 4;

/// Why bytes could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// A newer version wrote it, in a format that this version does not know.
    #[error("{NEWER} wrote it in format {found}, but this version reads only format {read}")]
    Newer {
        /// The format that was found.
        found: u8,
        /// The format that this version reads.
        read: u8,
    },
    /// A checksum does not match: the length or the content is damaged.
    #[error("damaged: the checksum of the {0} does not match")]
    Damaged(&'static str),
    /// The payload is larger than [`PAYLOAD_BYTES_MAX`].
    #[error("{0} bytes are more than the {PAYLOAD_BYTES_MAX} that a frame may hold")]
    TooLarge(usize),
    /// There are more bytes after the frame.
    #[error("the length does not match the content")]
    Length,
    /// The payload is not a value of the expected type, although its checksum matches.
    #[error("the content is malformed: {0}")]
    Malformed(String),
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<CodecError> for io::Error {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::Io(error) => error,
            newer @ CodecError::Newer { .. } => io::Error::new(io::ErrorKind::Unsupported, newer),
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        }
    }
}

/// Writes one value as a frame into new bytes.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity(256);
    encode_into(value, &mut bytes)?;
    Ok(bytes)
}

/// Appends one value as a frame to `bytes`.
pub fn encode_into<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; HEAD_BYTES]);
    options().serialize_into(&mut *bytes, value).map_err(|error| CodecError::Malformed(error.to_string()))?;
    let payload_bytes = bytes.len() - start - HEAD_BYTES;
    let length = u32::try_from(payload_bytes).ok().filter(|_| payload_bytes <= PAYLOAD_BYTES_MAX);
    let Some(length) = length else {
        bytes.truncate(start);
        return Err(CodecError::TooLarge(payload_bytes));
    };
    let payload_crc = crc32fast::hash(&bytes[start + HEAD_BYTES..]);
    bytes[start] = FORMAT;
    bytes[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    let head_crc = crc32fast::hash(&bytes[start..start + 5]);
    bytes[start + 5..start + HEAD_BYTES].copy_from_slice(&head_crc.to_be_bytes());
    bytes.extend_from_slice(&payload_crc.to_be_bytes());
    Ok(())
}

/// Writes one value as a frame, and returns the size of the frame in bytes.
pub fn write_to<T: Serialize + ?Sized>(value: &T, mut writer: impl Write) -> Result<usize, CodecError> {
    let bytes = encode(value)?;
    writer.write_all(&bytes)?;
    Ok(bytes.len())
}

/// Reads the value of a frame that fills `bytes` exactly.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let mut rest = bytes;
    let value = read_from(&mut rest)?;
    if rest.is_empty() { Ok(value) } else { Err(CodecError::Length) }
}

/// Reads the value of one frame. If the reader ends within the frame, the error is `UnexpectedEof`.
pub fn read_from<T: DeserializeOwned>(mut reader: impl Read) -> Result<T, CodecError> {
    let mut head = [0; HEAD_BYTES];
    reader.read_exact(&mut head)?;
    let (fields, head_crc) = head.split_at(5);
    if crc32fast::hash(fields).to_be_bytes() != head_crc {
        return Err(CodecError::Damaged("length"));
    }
    check_format(fields[0], FORMAT)?;
    let payload_bytes = u32::from_be_bytes([fields[1], fields[2], fields[3], fields[4]]) as usize;
    if payload_bytes > PAYLOAD_BYTES_MAX {
        return Err(CodecError::TooLarge(payload_bytes));
    }
    // Allocate for the bytes that arrive, not for the claimed length.
    let mut payload = Vec::new();
    let read = reader.by_ref().take(payload_bytes as u64 + 4).read_to_end(&mut payload)?;
    if read < payload_bytes + 4 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let payload_crc = payload.split_off(payload_bytes);
    if crc32fast::hash(&payload).to_be_bytes() != *payload_crc {
        return Err(CodecError::Damaged("content"));
    }
    options().deserialize(&payload).map_err(|error| CodecError::Malformed(error.to_string()))
}

/// Checks a format that was found against the one that this version reads. A checksum must cover the format.
pub fn check_format(found: u8, read: u8) -> Result<(), CodecError> {
    match found.cmp(&read) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(CodecError::Newer { found, read }),
        Ordering::Less => Err(CodecError::Malformed(format!("no version has written format {found}"))),
    }
}

fn options() -> impl Options {
    bincode::DefaultOptions::new().with_fixint_encoding().with_limit(PAYLOAD_BYTES_MAX as u64)
}

#[cfg(test)]
pub(crate) mod fuzz_tests;

#[cfg(test)]
mod tests;
