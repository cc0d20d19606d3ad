//! Why the storage failed. The node then stops, because it cannot keep its promises.

use std::io;
use std::path::{Path, PathBuf};

use crate::codec::CodecError;

/// A failure of the storage: which thing, which action, which path, and why.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system returned an error.
    #[error("cannot {action} the {thing} {}: {source}{}", path.display(), advice(source.kind()))]
    Io {
        /// Which part of the storage.
        thing: &'static str,
        /// The action that failed, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Another process uses this directory.
    #[error(
        "the data directory {} is in use by another process; stop that one, or give this node a directory of its own",
        path.display()
    )]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// The directory belongs to another program. Nothing was written to it.
    #[error(
        "{} is not a data directory of quorate: it contains {found:?}, but no identity file; \
         use an empty directory, or one that quorate created",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The name of a file or folder in it.
        found: String,
    },
    /// Acknowledged data is missing or can't be read. A node that takes part in Raft without it could make two raft
    /// leaders in one raft term, or lose entries that a majority had acknowledged.
    #[error(
        "the {thing} {} is damaged: {why}; this node must not take part under its old identity: keep the files, \
         move the data directory away, and start with an empty one, so that the node joins the cluster as a new node",
        path.display()
    )]
    Damaged {
        /// Which part of the storage.
        thing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// A newer version of quorate wrote the file. It is not damaged, and nothing was changed.
    ///
    /// A backup of this node alone would be a danger: the node would have forgotten its vote and acknowledged entries.
    #[error(
        "the {thing} {} can't be read: {why}; nothing was changed: start the newer version again, \
         or restore a backup made by this version (on every node, not only on this one)",
        path.display()
    )]
    Newer {
        /// Which part of the storage.
        thing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The format that was found, and the one that this version reads.
        why: String,
    },
    /// A value could not be turned into bytes. The disk is not the cause.
    #[error("cannot encode the {thing}: {source}; this is a fault of quorate: report it")]
    Encode {
        /// Which part of the storage.
        thing: &'static str,
        /// Why not.
        source: CodecError,
    },
    /// The lease database failed.
    #[error(
        "cannot {action} the lease database {}: {source}; check the disk and start again, nothing acknowledged is lost",
        path.display()
    )]
    Database {
        /// The action that failed, as a verb.
        action: &'static str,
        /// The folder of the database.
        path: PathBuf,
        /// The database's error.
        source: sled::Error,
    },
    /// The storage failed earlier, and has written nothing since then.
    #[error("the storage has stopped after a failure: {0}")]
    Stopped(String),
}

fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => "; the user that runs quorate must own the data directory (chown -R)",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "; a file is in the way: move it away, or use another data directory"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; the data directory must be on a file system that is mounted for writing"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and start again, nothing acknowledged is lost"
        }
        _ => "",
    }
}

impl StorageError {
    /// For `map_err`: adds the thing, the action and the path.
    pub(super) fn io(thing: &'static str, action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StorageError {
        move |source| StorageError::Io { thing, action, path: path.to_owned(), source }
    }

    /// For `map_err` when bytes are read: a failing disk and a newer version are not damage.
    pub(super) fn decode(thing: &'static str, path: &Path) -> impl FnOnce(CodecError) -> StorageError {
        move |source| match source {
            CodecError::Newer { .. } => StorageError::Newer { thing, path: path.to_owned(), why: source.to_string() },
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

// The storage traits of openraft return `io::Error`. Its text reaches the operator.
impl From<StorageError> for io::Error {
    fn from(error: StorageError) -> Self {
        let kind = match &error {
            StorageError::Io { source, .. } => source.kind(),
            StorageError::Damaged { .. } => io::ErrorKind::InvalidData,
            StorageError::Newer { .. } => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
