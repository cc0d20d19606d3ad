//! The identity of a node: drawn once, when its data directory is created, and never changed.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::data_dir::DataDir;
use super::error::StorageError;
use super::files;
use crate::codec;
use crate::raft_types::NodeId;
use crate::random::{Random, random_bytes};

const THING: &str = "identity";

/// The identity of a node. It is lost with the data directory: a node that lost its disk is a new node.
#[derive(Debug, Clone)]
pub struct Identity {
    dir: Arc<DataDir>,
    record: Record,
}

/// The content of the identity file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    node_id: NodeId,
    cluster_id: Option<Uuid>,
    /// The node's name when the file was written. Nothing reads it, but it is part of the format.
    name: String,
}

impl Identity {
    /// Reads the identity, or draws one for a new directory.
    pub(super) fn load_or_create(dir: Arc<DataDir>, name: &str, random: &dyn Random) -> Result<Identity, StorageError> {
        let path = dir.join("identity");
        if let Some(bytes) = files::read_if_there(THING, &path)? {
            return Ok(Identity { dir, record: decode(&bytes, &path)? });
        }
        let record = Record { node_id: draw_node_id(random), cluster_id: None, name: name.to_owned() };
        write(&dir, &record)?;
        Ok(Identity { dir, record })
    }

    /// The node's id in Raft.
    pub fn node_id(&self) -> NodeId {
        self.record.node_id
    }

    /// The cluster that this node belongs to, or `None` if it has not founded or joined one yet.
    pub fn cluster_id(&self) -> Option<Uuid> {
        self.record.cluster_id
    }

    /// Stores the cluster that this node has founded or joined. This is final, because no check could separate the
    /// entries of two clusters in one log.
    ///
    /// If the id can't be stored, the node stays without a cluster. Otherwise it would accept messages of this cluster
    /// now, and messages of any other cluster after a restart.
    pub fn set_cluster_id(&mut self, cluster_id: Uuid) -> Result<(), StorageError> {
        if self.record.cluster_id == Some(cluster_id) {
            return Ok(());
        }
        assert!(self.record.cluster_id.is_none(), "a node belongs to one cluster as long as its data exists");
        let record = Record { cluster_id: Some(cluster_id), ..self.record.clone() };
        write(&self.dir, &record)?;
        self.record = record;
        Ok(())
    }
}

fn write(dir: &DataDir, record: &Record) -> Result<(), StorageError> {
    let bytes = codec::encode(record).map_err(|source| StorageError::Encode { thing: THING, source })?;
    files::replace(THING, &dir.join("identity"), &bytes, dir.disk())
}

fn decode(bytes: &[u8], path: &Path) -> Result<Record, StorageError> {
    codec::decode(bytes).map_err(StorageError::decode(THING, path))
}

/// 53 random bits: a JSON number that every reader keeps exact. A collision is as unlikely as with 64 bits, because a
/// cluster has only a few nodes.
fn draw_node_id(random: &dyn Random) -> NodeId {
    (u64::from_be_bytes(random_bytes(random)) >> 11).max(1)
}

#[cfg(test)]
mod fuzz_tests;
