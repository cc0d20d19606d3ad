//! Why the disk could not be used. Whoever gets one of these stops the node: it cannot keep its promises.

use std::io;
use std::path::{Path, PathBuf};

use crate::codec::CodecError;

/// A failure of the storage: which thing, which action, which path, and why.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system said no.
    #[error("cannot {action} the {thing} {}: {source}{}", path.display(), advice(source.kind()))]
    Io {
        /// Which part of the storage.
        thing: &'static str,
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process works with this directory.
    #[error(
        "the data directory {} is in use by another process; stop that one, or give this node a directory of its own",
        path.display()
    )]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// The directory holds something else. Nothing was written to it.
    #[error(
        "{} is not a data directory of quorate: it has no identity file, but it has {found:?}; \
         give an empty directory, or one that quorate made",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// A name that is in it.
        found: String,
    },
    /// What was acknowledged is gone or can't be read. Taking part in Raft without it could make two raft
    /// leaders in one raft term, or forget what a majority was counted for.
    #[error(
        "the {thing} {} is damaged: {why}; this node must not take part under its old identity: keep the files, \
         move the data directory away, and start with an empty one, so that it joins the cluster as a new node",
        path.display()
    )]
    Damaged {
        /// Which part of the storage.
        thing: &'static str,
        /// Where.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// A later version wrote it.
    #[error("the {thing} {} was written by a later version of quorate: {source}; start that version", path.display())]
    Newer {
        /// Which part of the storage.
        thing: &'static str,
        /// Where.
        path: PathBuf,
        /// The unknown format.
        source: CodecError,
    },
    /// The data can't be stored, whatever the disk does.
    #[error("cannot encode the {thing}: {source}")]
    Encode {
        /// What was to be stored.
        thing: &'static str,
        /// Why not.
        source: CodecError,
    },
    /// The database of leases failed.
    #[error("cannot {action} the lease database {}: {source}", path.display())]
    Database {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: sled::Error,
    },
    /// The storage failed earlier, and nothing more is written since.
    #[error("the storage has stopped after a failure: {0}")]
    Stopped(String),
}

fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => "; the user that runs quorate must own the data directory (chown -R)",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "; there is a file in the way: give another directory"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; the data directory must be on a file system that can be written",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and start again, nothing acknowledged is lost"
        }
        _ => "",
    }
}

impl StorageError {
    /// For `map_err`: names the thing, the action and the path.
    pub(super) fn io(thing: &'static str, action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StorageError {
        move |source| StorageError::Io { thing, action, path: path.to_owned(), source }
    }

    /// For `map_err` when bytes are read: tells a failing disk and a later version from damage.
    pub(super) fn decode(thing: &'static str, path: &Path) -> impl FnOnce(CodecError) -> StorageError {
        move |source| match source {
            CodecError::UnknownFormat(_) => StorageError::Newer { thing, path: path.to_owned(), source },
            CodecError::Io(source) if source.kind() != io::ErrorKind::UnexpectedEof => {
                StorageError::Io { thing, action: "read", path: path.to_owned(), source }
            }
            source => StorageError::damaged(thing, path, source.to_string()),
        }
    }

    pub(super) fn damaged(thing: &'static str, path: &Path, why: impl Into<String>) -> StorageError {
        StorageError::Damaged { thing, path: path.to_owned(), why: why.into() }
    }
}

// openraft's storage traits speak `io::Error`; the text is what reaches the operator.
impl From<StorageError> for io::Error {
    fn from(error: StorageError) -> Self {
        let kind = match &error {
            StorageError::Io { source, .. } => source.kind(),
            StorageError::Damaged { .. } | StorageError::Newer { .. } => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
