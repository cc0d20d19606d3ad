use std::sync::atomic::Ordering;

use super::super::config::StorageConfig;
use super::super::disk::tests::UnflushedDisk;
use super::*;
use crate::random::SystemRandom;

#[test]
fn a_cluster_that_could_not_be_stored_is_not_kept_in_memory_and_can_be_stored_later() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(UnflushedDisk::default());
    let config = StorageConfig { disk: disk.clone(), ..StorageConfig::new(folder.path().join("data"), "n1") };
    let dir = Arc::new(DataDir::open(&config).unwrap());
    let load = || Identity::load_or_create(dir.clone(), "n1", &SystemRandom).unwrap();
    let mut identity = load();
    let cluster = Uuid::from_u128(7);

    disk.fails_next.store(true, Ordering::Relaxed);
    identity.set_cluster_id(cluster).unwrap_err();
    assert_eq!(identity.cluster_id(), None, "the next message of this cluster makes the node store it again");
    assert_eq!(load().cluster_id(), None);
    identity.set_cluster_id(cluster).unwrap();
    assert_eq!((identity.cluster_id(), load().cluster_id()), (Some(cluster), Some(cluster)));
}
