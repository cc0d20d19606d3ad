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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::{Disk, StorageConfig};
    use super::*;
    use crate::random::SystemRandom;

    /// Full when the next file is brought to it, if it is told so, and then not any more.
    #[derive(Debug, Default)]
    struct FullOnce(AtomicBool);

    impl Disk for FullOnce {
        fn sync_file(&self, _path: &Path, _file: &File) -> io::Result<()> {
            if self.0.swap(false, Ordering::Relaxed) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
            Ok(())
        }

        fn sync_tree(&self, _folder: &Path) -> io::Result<()> {
            Ok(())
        }

        fn log_syncs_itself(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_cluster_that_could_not_be_stored_is_not_known_and_can_be_stored_later() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FullOnce::default());
        let config = StorageConfig { disk: disk.clone(), ..StorageConfig::new(folder.path().join("data"), "n1") };
        let dir = Arc::new(DataDir::open(&config).unwrap());
        let load = || Identity::load_or_create(dir.clone(), "n1", &SystemRandom).unwrap();
        let mut identity = load();
        let cluster = Uuid::from_u128(7);

        disk.0.store(true, Ordering::Relaxed);
        identity.set_cluster_id(cluster).unwrap_err();
        assert_eq!(identity.cluster_id(), None, "the next message from this cluster asks for it again");
        assert_eq!(load().cluster_id(), None);
        identity.set_cluster_id(cluster).unwrap();
        assert_eq!((identity.cluster_id(), load().cluster_id()), (Some(cluster), Some(cluster)));
    }
}
