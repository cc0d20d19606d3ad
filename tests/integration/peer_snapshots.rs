//! Snapshots that one node sends to another: not needed, damaged on the way, or damaged on the disk of the sender.

use std::fs;
use std::path::{Path, PathBuf};

use quorate::codec;
use quorate::domain::Counters;
use quorate::peer::{SnapshotHead, path};
use quorate::raft_types::{LogId, SnapshotMeta, Vote};
use uuid::Uuid;

use crate::caller::{Caller, fill_log};
use crate::harness::{Cluster, Node, eventually};
use crate::peer_caller::Target;
use crate::storage_fixtures::{change, lease, open, room};

/// All files in the snapshot folder of a node: snapshots, and temporary files that may become one.
fn files_of(node: &Node) -> Vec<PathBuf> {
    let entries = fs::read_dir(node.settings.data_dir.join("snapshots")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn unfinished(node: &Node) -> Vec<PathBuf> {
    files_of(node).into_iter().filter(|path| path.extension().is_none_or(|extension| extension != "snapshot")).collect()
}

/// The newest snapshot of a node. Waits until there is one.
async fn newest_of(node: &Node) -> PathBuf {
    eventually("a snapshot", || async {
        files_of(node).into_iter().find(|path| path.extension().is_some_and(|extension| extension == "snapshot"))
    })
    .await
}

/// The part of the log that a snapshot covers, by its own header.
fn meta_of(mut snapshot: &[u8]) -> SnapshotMeta {
    let header: (String, Option<Uuid>, SnapshotMeta, Counters, u64) = codec::read_from(&mut snapshot).unwrap();
    header.2
}

fn message(vote: Vote, meta: &SnapshotMeta, content: &[u8]) -> Vec<u8> {
    let mut message = codec::encode(&SnapshotHead { vote, meta: meta.clone() }).unwrap();
    message.extend_from_slice(content);
    message
}

/// An intact snapshot that no node of the cluster has made.
fn made_up(folder: &Path, cluster_id: Uuid, meta: &SnapshotMeta) -> Vec<u8> {
    let storage = open(folder);
    let leases: Vec<_> = (0..100).map(|number| (room(number), lease(number))).collect();
    let written = storage.snapshots.write(Some(cluster_id), meta, Counters::default(), leases.into_iter()).unwrap();
    fs::read(written.path).unwrap()
}

async fn vote_of_raft_leader(cluster: &Cluster, raft_leader: usize) -> Vote {
    let raft_term = cluster.nodes[raft_leader].status().await.unwrap()["raft_term"].as_u64().unwrap();
    Vote::new_committed(raft_term, Target::of(cluster, raft_leader).await.identity.node_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_not_needed_leaves_no_file_behind() {
    let cluster = Cluster::three_with(&["--snapshot-every", "100"]).await;
    let raft_leader = cluster.raft_leader().await;
    fill_log(&Caller::of(&cluster.nodes[raft_leader]).await, 200).await;
    cluster.converged().await;
    let content = fs::read(newest_of(&cluster.nodes[raft_leader]).await).unwrap();
    let meta = meta_of(&content);
    let vote = vote_of_raft_leader(&cluster, raft_leader).await;
    let place = (raft_leader + 1) % 3;
    let target = Target::of(&cluster, place).await;
    for vote in [vote, vote, Vote::new_committed(0, 1)] {
        let message = message(vote, &meta, &content);
        let (status, text, _) = target.ask(path::SNAPSHOT, &target.headers(), message.len(), &message).await;
        assert_eq!(status, 200, "{text}");
        assert_eq!(unfinished(&cluster.nodes[place]), [] as [PathBuf; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_snapshot_is_rejected_and_leaves_the_node_unchanged() {
    let cluster = Cluster::three_with(&["--snapshot-every", "100"]).await;
    let raft_leader = cluster.raft_leader().await;
    let held = fill_log(&Caller::of(&cluster.nodes[raft_leader]).await, 200).await;
    cluster.converged().await;
    let vote = vote_of_raft_leader(&cluster, raft_leader).await;
    let real = meta_of(&fs::read(newest_of(&cluster.nodes[raft_leader]).await).unwrap());
    let ahead = |index| SnapshotMeta {
        last_log_id: real.last_log_id.map(|id| LogId { index: id.index + index, ..id }),
        ..real.clone()
    };
    let place = (raft_leader + 1) % 3;
    let target = Target::of(&cluster, place).await;
    let folder = tempfile::tempdir().unwrap();
    let good = made_up(&folder.path().join("good"), target.identity.cluster_id.unwrap(), &ahead(10_000));
    let of_others = made_up(&folder.path().join("other"), Uuid::from_u128(7), &ahead(10_000));
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 0x10;
    for (what, head, content) in [
        ("a flipped bit", ahead(10_000), &damaged[..]),
        ("the first half", ahead(10_000), &good[..good.len() / 2]),
        ("a snapshot of another cluster", ahead(10_000), &of_others),
        ("a content that does not match the head", ahead(10_001), &good),
    ] {
        let message = message(vote, &head, content);
        let (status, text, _) = target.ask(path::SNAPSHOT, &target.headers(), message.len(), &message).await;
        assert_eq!(status, 400, "{what}: {text}");
        assert_eq!(unfinished(&cluster.nodes[place]), [] as [PathBuf; 0], "{what}");
    }
    cluster.ready().await;
    cluster.converged().await;
    let seen = Caller::of(&cluster.nodes[place]).await.status(&held[0].room).await;
    assert_eq!(seen.body["leader"]["term"], held[0].term, "{}", seen.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raft_leader_whose_snapshot_is_damaged_makes_another() {
    const EVERY: u64 = 500;
    let every = EVERY.to_string();
    let mut cluster = Cluster::three_with(&["--snapshot-every", &every, "--log-entries-kept", "1000"]).await;
    let down = cluster.follower().await;
    cluster.nodes[down].kill();
    let raft_leader = cluster.raft_leader().await;
    let held = fill_log(&Caller::of(&cluster.nodes[raft_leader]).await, 3_000).await;
    // On a busy machine the other node may become raft leader meanwhile, so the snapshots of both are damaged.
    let up: Vec<usize> = (0..3).filter(|place| *place != down).collect();
    for place in &up {
        let node = &cluster.nodes[*place];
        let damaged = eventually("no further snapshot is due", || async {
            let newest = newest_of(node).await;
            let covered = meta_of(&fs::read(&newest).ok()?).last_log_id?.index;
            let applied = node.status().await?["applied_index"].as_u64()?;
            // Ticks go on.
            (covered + EVERY > applied + 20).then_some(newest)
        })
        .await;
        change(&damaged, |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
        });
    }

    cluster.nodes[down].start_again();
    cluster.ready().await;
    cluster.converged().await;
    let status = cluster.nodes[down].status().await.unwrap();
    assert!(status["log_entries_written"].as_u64().unwrap() < 2_500, "most entries came by snapshot: {status}");
    let known = Caller::of(&cluster.nodes[down]).await.local_status(&held[0].room).await;
    assert_eq!(known.body["leader"]["term"], held[0].term, "{}", known.text);
    let noticed = up.iter().any(|place| cluster.nodes[*place].output().contains("a new one is made"));
    assert!(noticed, "the raft leader did not notice the damage");
}
