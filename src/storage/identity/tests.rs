use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::config::StorageConfig;
use super::super::disk::Disk;
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
