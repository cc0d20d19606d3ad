//! Nodes whose disk fails or fills up: they say so and end, the others serve, and nothing acknowledged is lost.

use std::io::Write;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::caller::{Caller, Held};
use crate::disk_image::Disk;
use crate::harness::{Cluster, Node, eventually};

/// Three nodes, of which the raft leader keeps its data on a file system of its own; and the leader's place.
async fn cluster_on(disk: &Disk) -> (Cluster, usize) {
    let mut cluster = Cluster::three_not_started(&[]);
    cluster.nodes[0].settings.data_dir = disk.data_dir();
    cluster.nodes.iter_mut().for_each(Node::start_again);
    cluster.ready().await;
    // Raft leadership moves on when its node is told to stop; so it comes to the first node in a few steps.
    loop {
        let leader = cluster.raft_leader().await;
        if leader == 0 {
            return (cluster, leader);
        }
        cluster.nodes[leader].signal(rustix::process::Signal::TERM);
        cluster.nodes[leader].exit_code().await;
        cluster.nodes[leader].start_again();
        cluster.ready().await;
    }
}

async fn leases_live_on(cluster: &Cluster, held: &[Held]) {
    let others = [Caller::of(&cluster.nodes[1]).await, Caller::of(&cluster.nodes[2]).await];
    for (place, lease) in held.iter().enumerate() {
        eventually("the others serve", || async {
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
async fn a_raft_leader_with_a_full_disk_ends_and_comes_back_when_there_is_room() {
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
    // Writes go on until the log needs a block that it hasn't got.
    eventually("the node with the full disk ends", || async {
        for lease in &held {
            caller.renew(&lease.room, &lease.token).await;
        }
        of_full.try_send(of_full.request(Method::GET, "/livez")).await.is_none().then_some(())
    })
    .await;
    assert_eq!(cluster.nodes[full].exit_code().await, Some(70));
    let output = cluster.nodes[full].output();
    assert!(output.contains("No space left on device"), "it says why");
    leases_live_on(&cluster, &held).await;
    std::fs::remove_file(&ballast).unwrap();
    cluster.nodes[full].start_again();
    cluster.ready().await;
    leases_live_on(&cluster, &held).await;
    cluster.converged().await;
    cluster.nodes.iter_mut().for_each(Node::kill);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_serves_on_when_the_disk_of_its_raft_leader_dies_and_loses_nothing_when_it_is_back() {
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

/// Open requests go on trying for their whole deadline, and once kept a node with a dead core alive as long: its
/// supervisor could not start it again, and clients hung on it instead of going to another.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_dead_disk_ends_within_two_seconds_whatever_requests_are_open() {
    let disk = match Disk::make() {
        Ok(disk) => disk,
        Err(why) => return println!("SKIPPED: {why}"),
    };
    let (mut cluster, dead) = cluster_on(&disk).await;
    let caller = Caller::of(&cluster.nodes[dead]).await;
    disk.cut_power();
    for count in 0..50 {
        let request = caller.request(Method::POST, &format!("/elections/open-request-{count}/campaign"));
        // Whether it is answered, and what, is not the matter here.
        tokio::spawn(request.json(&json!({"candidate_id": "worker-a"})).send());
    }
    eventually("the failure is noticed", || async {
        cluster.nodes[dead].output().contains("stopping: no longer ready").then_some(())
    })
    .await;
    let noticed_at = Instant::now();
    assert_eq!(cluster.nodes[dead].exit_code().await, Some(70));
    assert!(noticed_at.elapsed() < Duration::from_secs(2), "{:?}", noticed_at.elapsed());
    cluster.nodes.iter_mut().for_each(Node::kill);
}
