//! Nodes whose disk fails or is full. Such a node logs the reason and ends. The others serve on, and nothing that was
//! acknowledged is lost.

use std::io::Write;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::caller::{Caller, Held};
use crate::disk_image::Disk;
use crate::harness::{Cluster, Node, eventually};

/// Three nodes, and the place of the raft leader. The raft leader keeps its data on `disk`.
async fn cluster_on(disk: &Disk) -> (Cluster, usize) {
    let mut cluster = Cluster::three_not_started(&[]);
    cluster.nodes[0].settings.data_dir = disk.data_dir();
    cluster.nodes.iter_mut().for_each(Node::start_again);
    cluster.ready().await;
    // A raft leader that gets SIGTERM hands over to another node. Repeat that until the first node is raft leader.
    loop {
        let raft_leader = cluster.raft_leader().await;
        if raft_leader == 0 {
            return (cluster, raft_leader);
        }
        cluster.nodes[raft_leader].signal(rustix::process::Signal::TERM);
        cluster.nodes[raft_leader].exit_code().await;
        cluster.nodes[raft_leader].start_again();
        cluster.ready().await;
    }
}

/// Checks that the two nodes with a good disk renew all these leases.
async fn leases_live_on(cluster: &Cluster, held: &[Held]) {
    let others = [Caller::of(&cluster.nodes[1]).await, Caller::of(&cluster.nodes[2]).await];
    for (place, lease) in held.iter().enumerate() {
        eventually("another node renews the lease", || async {
            let renewed = others[place % 2].renew(&lease.room, &lease.token).await;
            assert_ne!(renewed.status, 404, "{}", renewed.text);
            (renewed.status == 200).then(|| assert_eq!(renewed.body["leader"]["term"], lease.term))
        })
        .await;
    }
}

async fn hold_some(cluster: &Cluster) -> Vec<Held> {
    let callers = Caller::of_each(cluster).await;
    let mut held = Vec::new();
    for count in 0..10 {
        held.push(callers[count % 3].win(&format!("on-a-bad-disk-{count}"), "worker-a", 300).await);
    }
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raft_leader_with_a_full_disk_ends_and_starts_again_when_there_is_space() {
    let disk = match Disk::make() {
        Ok(disk) => disk,
        Err(why) => return println!("SKIPPED: {why}"),
    };
    let (mut cluster, full) = cluster_on(&disk).await;
    let held = hold_some(&cluster).await;
    let (caller, of_full) = (Caller::of(&cluster.nodes[1]).await, Caller::of(&cluster.nodes[full]).await);
    let ballast = disk.data_dir().parent().unwrap().join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let _ = file.sync_all();
    // The log still has free space in its last block, so it takes some writes until one fails.
    eventually("the node with the full disk ends", || async {
        for lease in &held {
            caller.renew(&lease.room, &lease.token).await;
        }
        of_full.try_send(of_full.request(Method::GET, "/livez")).await.is_none().then_some(())
    })
    .await;
    assert_eq!(cluster.nodes[full].exit_code().await, Some(70));
    let output = cluster.nodes[full].output();
    assert!(output.contains("No space left on device"), "the reason is not logged");
    leases_live_on(&cluster, &held).await;
    std::fs::remove_file(&ballast).unwrap();
    cluster.nodes[full].start_again();
    cluster.ready().await;
    leases_live_on(&cluster, &held).await;
    cluster.converged().await;
    cluster.nodes.iter_mut().for_each(Node::kill);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_disk_of_the_raft_leader_fails_the_others_serve_and_no_lease_is_lost() {
    let disk = match Disk::make() {
        Ok(disk) => disk,
        Err(why) => return println!("SKIPPED: {why}"),
    };
    let (mut cluster, dead) = cluster_on(&disk).await;
    let held = hold_some(&cluster).await;
    disk.cut_power();
    leases_live_on(&cluster, &held).await;
    assert_eq!(cluster.nodes[dead].exit_code().await, Some(70));
    disk.unmount().unwrap();
    disk.mount().unwrap();
    cluster.nodes[dead].start_again();
    cluster.ready().await;
    leases_live_on(&cluster, &held).await;
    cluster.converged().await;
    cluster.nodes.iter_mut().for_each(Node::kill);
}

/// An open request retries until its deadline. A bug let such requests keep a node alive whose raft core had ended. Its
/// supervisor could not restart it, and clients waited for it instead of calling another node.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_failed_disk_ends_within_two_seconds_although_requests_are_open() {
    let disk = match Disk::make() {
        Ok(disk) => disk,
        Err(why) => return println!("SKIPPED: {why}"),
    };
    let (mut cluster, dead) = cluster_on(&disk).await;
    let caller = Caller::of(&cluster.nodes[dead]).await;
    disk.cut_power();
    for count in 0..50 {
        let request = caller.request(Method::POST, &format!("/elections/open-request-{count}/campaign"));
        // The answers do not matter here.
        tokio::spawn(request.json(&json!({"candidate_id": "worker-a"})).send());
    }
    eventually("the node notices the failure", || async {
        cluster.nodes[dead].output().contains("stopping: no longer ready").then_some(())
    })
    .await;
    let noticed_at = Instant::now();
    assert_eq!(cluster.nodes[dead].exit_code().await, Some(70));
    assert!(noticed_at.elapsed() < Duration::from_secs(2), "{:?}", noticed_at.elapsed());
    cluster.nodes.iter_mut().for_each(Node::kill);
}
