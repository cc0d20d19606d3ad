//! The stores as openraft uses them, and what a restart finds.

use std::sync::Arc;

use openraft::RaftLogReader;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::type_config::TypeConfigExt;
use quorate::clock::SystemClock;
use quorate::consensus::{LocalNode, Replica, StateMachine};
use quorate::raft_types::{Node, TypeConfig, Vote};
use quorate::random::SystemRandom;
use quorate::storage::{LogStore, StorageConfig, StorageError};

use crate::storage_fixtures::{
    UnflushedDisk, append, config, entry, log_id, membership, open, read_all, state, try_open, write_snapshot,
};

type StorageErrorOfRaft = openraft::StorageError<TypeConfig>;

struct Builder {
    log_chunk_bytes: usize,
}

impl StoreBuilder<TypeConfig, LogStore, StateMachine, tempfile::TempDir> for Builder {
    async fn build(&self) -> Result<(tempfile::TempDir, LogStore, StateMachine), StorageErrorOfRaft> {
        let dir = tempfile::tempdir().unwrap();
        let config = StorageConfig { log_chunk_bytes: self.log_chunk_bytes, ..config(dir.path()) };
        let storage = quorate::storage::open(config, &SystemRandom).unwrap();
        let local = Arc::new(LocalNode::new(storage.identity, Node::default()));
        let recovered = storage.recovered;
        let clock = SystemClock::start().unwrap();
        let replica = Replica::new(recovered.rooms, recovered.applied, recovered.membership, clock);
        Ok((dir, storage.log, StateMachine::new(local, replica, storage.state, storage.snapshots)))
    }
}

#[tokio::test]
async fn the_stores_pass_the_test_suite_of_openraft() {
    Suite::test_all(Builder { log_chunk_bytes: 4 << 20 }).await.unwrap();
}

#[tokio::test]
async fn the_stores_pass_the_test_suite_with_a_new_log_file_every_few_records() {
    Suite::test_all(Builder { log_chunk_bytes: 300 }).await.unwrap();
}

#[tokio::test]
async fn a_restart_finds_everything_that_was_stored() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    let node_id = storage.identity.node_id();
    let cluster_id = uuid::Uuid::from_u128(5);
    storage.identity.set_cluster_id(cluster_id).unwrap();
    storage.log.save_vote(&Vote::new(3, 1)).await.unwrap();
    append(&mut storage.log, (0..20).map(|index| entry(3, index))).await.unwrap();
    storage.log.save_committed(Some(log_id(3, 12))).await.unwrap();
    let (rooms, meta) = state(10, log_id(3, 10));
    let changes: Vec<_> = rooms.leases().map(|(room, lease)| (room.clone(), Some(lease.clone()))).collect();
    storage.state.apply(&changes, &meta).unwrap();
    drop(storage);

    let mut storage = open(dir.path());
    assert_eq!(storage.identity.node_id(), node_id);
    assert_eq!(storage.identity.cluster_id(), Some(cluster_id));
    assert_eq!(storage.log.read_vote().await.unwrap(), Some(Vote::new(3, 1)));
    assert_eq!(storage.log.read_committed().await.unwrap(), Some(log_id(3, 12)));
    assert_eq!(read_all(&mut storage.log).await, (0..20).map(|index| entry(3, index)).collect::<Vec<_>>());
    assert_eq!(storage.recovered.rooms, rooms);
    assert_eq!(storage.recovered.applied, Some(log_id(3, 10)));
    assert_eq!(storage.recovered.membership, membership());
}

#[tokio::test]
async fn appends_that_wait_together_share_a_flush() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    let mut answers = Vec::new();
    for index in 0..1_000 {
        let (answer, answered) = TypeConfig::oneshot();
        storage.log.append([entry(1, index)], IOFlushed::signal(answer)).await.unwrap();
        answers.push(answered);
    }
    for answered in answers {
        answered.await.unwrap().unwrap();
    }
    let stats = storage.log.stats();
    assert_eq!(stats.entries_appended, 1_000);
    assert!(stats.flushes < 1_000, "{stats:?}");
}

#[tokio::test]
async fn a_read_for_a_peer_stops_at_its_size_limit_but_returns_at_least_one_entry() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    append(&mut storage.log, (0..20_000).map(|index| entry(1, index))).await.unwrap();
    let read = storage.log.limited_get_log_entries(0, 20_000).await.unwrap();
    assert!((1_000..20_000).contains(&read.len()), "{}", read.len());
    assert_eq!(storage.log.limited_get_log_entries(19_999, 20_000).await.unwrap().len(), 1);
    assert_eq!(read_all(&mut storage.log).await.len(), 20_000);
}

#[tokio::test]
async fn a_committed_id_that_is_old_or_beyond_the_log_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    append(&mut storage.log, (0..10).map(|index| entry(1, index))).await.unwrap();
    for (given, kept) in [(5, 5), (3, 5), (5, 5), (50, 5), (9, 9)] {
        storage.log.save_committed(Some(log_id(1, given))).await.unwrap();
        assert_eq!(storage.log.read_committed().await.unwrap(), Some(log_id(1, kept)));
    }
    storage.log.save_committed(None).await.unwrap();
}

#[tokio::test]
async fn a_truncated_log_is_not_taken_for_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    append(&mut storage.log, (0..10).map(|index| entry(1, index))).await.unwrap();
    drop(storage);
    let mut storage = open(dir.path());
    storage.log.truncate_after(Some(log_id(1, 4))).await.unwrap();
    drop(storage);
    let mut storage = open(dir.path());
    assert_eq!(storage.log.last_log_id(), Some(log_id(1, 4)));
    append(&mut storage.log, [entry(2, 5)]).await.unwrap();
    assert_eq!(read_all(&mut storage.log).await.len(), 6);
}

#[tokio::test]
async fn a_snapshot_replaces_entries_that_were_never_committed() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    append(&mut storage.log, (0..5).map(|index| entry(1, index))).await.unwrap();
    storage.log.save_committed(Some(log_id(1, 3))).await.unwrap();
    append(&mut storage.log, (5..10).map(|index| entry(5, index))).await.unwrap();
    storage.log.purge(log_id(4, 20)).await.unwrap();
    assert_eq!(storage.log.last_log_id(), Some(log_id(4, 20)));
    append(&mut storage.log, [entry(6, 21)]).await.unwrap();
    write_snapshot(&storage.snapshots, 3, log_id(4, 20));
    drop(storage);
    let mut storage = open(dir.path());
    assert_eq!(storage.log.purged_log_id(), Some(log_id(4, 20)));
    assert_eq!(read_all(&mut storage.log).await, [entry(6, 21)]);
}

#[tokio::test]
async fn a_snapshot_installation_that_a_crash_interrupted_is_finished_at_the_next_start() {
    for snapshot_id in [log_id(4, 20), log_id(4, 7), log_id(5, 8)] {
        let dir = tempfile::tempdir().unwrap();
        let mut storage = open(dir.path());
        append(&mut storage.log, (0..5).map(|index| entry(1, index))).await.unwrap();
        append(&mut storage.log, (5..10).map(|index| entry(5, index))).await.unwrap();
        write_snapshot(&storage.snapshots, 3, snapshot_id);
        drop(storage);
        let storage = open(dir.path());
        assert_eq!(storage.recovered.applied, Some(snapshot_id));
        assert_eq!(storage.recovered.rooms.leases().len(), 3);
        let last = storage.log.last_log_id().unwrap();
        // If the log contains the last entry of the snapshot, the entries after it stay.
        let expected = if snapshot_id == log_id(5, 8) { log_id(5, 9) } else { snapshot_id };
        assert_eq!(last, expected);
    }
}

#[tokio::test]
async fn a_database_older_than_the_purged_log_is_replaced_by_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    append(&mut storage.log, (0..30).map(|index| entry(1, index))).await.unwrap();
    let (rooms, meta) = state(2, log_id(1, 5));
    storage.state.replace_all(&rooms, &meta).unwrap();
    write_snapshot(&storage.snapshots, 4, log_id(1, 20));
    storage.log.purge(log_id(1, 15)).await.unwrap();
    drop(storage);
    let storage = open(dir.path());
    assert_eq!(storage.recovered.applied, Some(log_id(1, 20)));
    assert_eq!(storage.recovered.rooms.leases().len(), 4);
}

#[tokio::test]
async fn a_purged_log_without_the_state_before_it_is_taken_for_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    append(&mut storage.log, (0..30).map(|index| entry(1, index))).await.unwrap();
    storage.log.purge(log_id(1, 15)).await.unwrap();
    drop(storage);
    let Err(error) = try_open(dir.path()) else { panic!("the damaged directory was opened") };
    assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("joins the cluster as a new node"), "{error}");
}

#[tokio::test]
async fn a_database_ahead_of_the_log_is_ignored_and_not_taken_for_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    append(&mut storage.log, (0..5).map(|index| entry(1, index))).await.unwrap();
    let (rooms, meta) = state(2, log_id(1, 7));
    storage.state.replace_all(&rooms, &meta).unwrap();
    drop(storage);
    for _ in 0..2 {
        let storage = open(dir.path());
        assert_eq!(storage.recovered, quorate::storage::Recovered::default());
    }
}

#[test]
fn only_one_process_at_a_time_can_open_a_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path());
    assert!(matches!(try_open(dir.path()), Err(StorageError::InUse { .. })));
    let log = storage.log.clone();
    drop(storage);
    assert!(matches!(try_open(dir.path()), Err(StorageError::InUse { .. })), "the log is still open");
    drop(log);
    open(dir.path());
}

#[test]
fn a_directory_with_foreign_files_is_left_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "mine").unwrap();
    assert!(matches!(try_open(dir.path()), Err(StorageError::Foreign { .. })));
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["thesis.txt"]);
}

#[test]
fn a_first_start_that_was_interrupted_can_be_repeated() {
    let dir = tempfile::tempdir().unwrap();
    for left in ["lock", "identity.tmp"] {
        std::fs::write(dir.path().join(left), "").unwrap();
    }
    std::fs::create_dir(dir.path().join("lost+found")).unwrap();
    open(dir.path());
}

#[test]
fn disk_space_is_reserved_for_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    assert_eq!(std::fs::metadata(dir.path().join("reserve")).unwrap().len(), 4 << 20);
}

#[test]
fn only_the_owner_can_read_a_new_data_directory() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("deep").join("data");
    drop(open(&dir));
    let mode = |name: &str| std::fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
    for folder in ["", "log", "snapshots"] {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
    for file in ["identity", "watermark", "lock", "reserve"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
}

#[test]
fn a_directory_written_without_flushes_opens_with_flushes() {
    let dir = tempfile::tempdir().unwrap();
    let config = StorageConfig { disk: Arc::new(UnflushedDisk::default()), ..config(dir.path()) };
    drop(quorate::storage::open(config, &SystemRandom).unwrap());
    open(dir.path());
}
