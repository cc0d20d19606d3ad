//! Who this node is: drawn once, when its data directory is made, and never changed.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::data_dir::DataDir;
use super::{StorageError, files};
use crate::codec;
use crate::raft_types::NodeId;
use crate::random::{Random, random_bytes};

const THING: &str = "identity";

/// The identity of a node. It dies with its data directory: a node that lost its disk is another node.
#[derive(Debug, Clone)]
pub struct Identity {
    dir: Arc<DataDir>,
    record: Record,
}

/// What the identity file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    node_id: NodeId,
    cluster_id: Option<Uuid>,
    name: String,
}

impl Identity {
    /// Reads the identity, or draws one for a directory that is new.
    pub(super) fn load_or_create(dir: Arc<DataDir>, name: &str, random: &dyn Random) -> Result<Identity, StorageError> {
        let path = dir.join("identity");
        if let Some(bytes) = files::read_if_there(THING, &path)? {
            return Ok(Identity { dir, record: decode(&bytes, &path)? });
        }
        let record = Record { node_id: draw_node_id(random), cluster_id: None, name: name.to_owned() };
        write(&dir, &record)?;
        Ok(Identity { dir, record })
    }

    /// The raft node id.
    pub fn node_id(&self) -> NodeId {
        self.record.node_id
    }

    /// The cluster that this node belongs to, once it does.
    pub fn cluster_id(&self) -> Option<Uuid> {
        self.record.cluster_id
    }

    /// The name that the node had when its directory was made. A label; it may be called otherwise by now.
    pub fn name_at_creation(&self) -> &str {
        &self.record.name
    }

    /// Notes the cluster that this node has founded or joined. It is for good: entries of two clusters in one
    /// log would be a mixture that no check can take apart. What can't be stored isn't noted: the next message
    /// would be taken as one of the node's own cluster, and after a restart any other could make this node its own.
    pub fn set_cluster_id(&mut self, cluster_id: Uuid) -> Result<(), StorageError> {
        if self.record.cluster_id == Some(cluster_id) {
            return Ok(());
        }
        assert!(self.record.cluster_id.is_none(), "a node belongs to one cluster for as long as its data exists");
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

/// 53 random bits: as good as 64 against a collision in a cluster of a few nodes, and exact in every JSON reader.
fn draw_node_id(random: &dyn Random) -> NodeId {
    (u64::from_be_bytes(random_bytes(random)) >> 11).max(1)
}

#[cfg(test)]
mod fuzz_tests;
