//! More connections than a node can serve, and a low limit of open files.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};

use crate::caller::{Caller, Held};
use crate::harness::{Cluster, Node, eventually, http};
use crate::raw_connection::RawConnection;

/// With this limit a single node has 19 places for clients, and one address may take 9 of them.
const FEW_FILES: &str = "-n 128";

/// Opens connections that send nothing.
async fn idle(node: &Node, from: Ipv4Addr, count: usize) -> Vec<TcpStream> {
    let mut connections = Vec::new();
    for _ in 0..count {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        connections.push(socket.connect((node.settings.address, 7400).into()).await.unwrap());
    }
    connections
}

fn open_files(node: &Node) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", node.pid())).unwrap().count()
}

fn watermark_written_at(node: &Node) -> SystemTime {
    std::fs::metadata(node.settings.data_dir.join("watermark")).unwrap().modified().unwrap()
}

/// Waits until the node has opened and written a file twice. It does so once a second while leases change.
async fn wrote_to_its_disk(node: &Node) {
    for _ in 0..2 {
        let before = watermark_written_at(node);
        let is_new = async || (watermark_written_at(node) > before).then_some(());
        eventually("the watermark is written again", is_new).await;
    }
}

/// Whether the peer listener answers at all. Its answer to a stranger is an error.
async fn answers_peers(node: &Node) -> bool {
    http().get(node.settings.peer_url()).send().await.is_ok()
}

/// Renews over one connection until it is told to stop. Returns the number of renewals, and the time of the slowest.
async fn keep_renewing(mut connection: RawConnection, held: Held, stop: Arc<AtomicBool>) -> (u64, Duration) {
    let body = json!({"leader_token": held.token, "metadata": "m".repeat(1000)}).to_string();
    let request = format!(
        "POST /elections/{}/renew HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n\
         {body}",
        held.room,
        body.len()
    );
    let (mut count, mut slowest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let asked_at = Instant::now();
        connection.send(request.as_bytes()).await;
        let reply = connection.receive(false).await.expect("the holder's connection stays open");
        assert_eq!(reply.status, 200, "{reply:?}");
        slowest = slowest.max(asked_at.elapsed());
        count += 1;
    }
    (count, slowest)
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_do_not_block_the_disk_or_holders_or_peers_of_a_node() {
    let cluster = Cluster::single_with_peer_listener(Some(FEW_FILES)).await;
    let node = &cluster.nodes[0];
    let room = "crowded-room";
    let held = Caller::of(node).await.win(room, "worker-a", 300).await;
    let stop = Arc::new(AtomicBool::new(false));
    let holder = tokio::spawn(keep_renewing(RawConnection::open(node).await, held, stop.clone()));

    // One address gets no more than its share. The other addresses have the rest.
    let _greedy = idle(node, Ipv4Addr::new(127, 0, 0, 2), 300).await;
    wrote_to_its_disk(node).await;
    assert!(node.is_ready().await, "the node is ready for another address");
    assert!(answers_peers(node).await);

    // Many addresses take all places. Further connections wait.
    let mut crowd = Vec::new();
    for host in 1..=20 {
        crowd.extend(idle(node, Ipv4Addr::new(127, 0, 1, host), 1).await);
    }
    let mut late = RawConnection::open(node).await;
    let came_at = Instant::now();
    late.send(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually("the node logs it", || async { node.output().contains("all connections are taken").then_some(()) })
        .await;
    wrote_to_its_disk(node).await;
    assert!(answers_peers(node).await);
    let files = open_files(node);
    assert!(files < 128 - 32, "{files} open files leave nothing for the disk and the peers");

    // The node closes a silent connection after 10 s, and a waiting connection takes its place.
    assert_eq!(late.receive(false).await.expect("a place becomes free").status, 200);
    println!("{files} open files of 128; the last connection was served after {:?}", came_at.elapsed());
    stop.store(true, Ordering::Relaxed);
    let (renewals, slowest) = holder.await.unwrap();
    println!("meanwhile {renewals} renewals; the slowest took {slowest:?}");
    eventually("the node is ready again", || async { node.is_ready().await.then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raft_leader_with_all_client_places_taken_stays_in_office_and_serves_its_peers() {
    // So long that a busy machine does not cause a raft election.
    let mut cluster = Cluster::three_not_started(&["--raft-election-timeout", "2s"]);
    for node in &mut cluster.nodes {
        // The node keeps 205 of them for its disk and its peers.
        node.settings.ulimit = Some("-n 256");
        node.start_again();
    }
    cluster.ready().await;
    let [raft_leader, follower] =
        [cluster.raft_leader().await, cluster.follower().await].map(|place| &cluster.nodes[place]);
    let raft_term = raft_leader.status().await.unwrap()["raft_term"].clone();
    let room = "crowded-room";
    let held = Caller::of(follower).await.win(room, "worker-a", 300).await;
    let stop = Arc::new(AtomicBool::new(false));
    let holder = tokio::spawn(keep_renewing(RawConnection::open(follower).await, held, stop.clone()));

    let mut crowd = Vec::new();
    for host in 1..=60 {
        crowd.extend(idle(raft_leader, Ipv4Addr::new(127, 0, 1, host), 1).await);
    }
    eventually("all places of the raft leader are taken", || async {
        raft_leader.output().contains("all connections are taken").then_some(())
    })
    .await;
    wrote_to_its_disk(raft_leader).await;
    stop.store(true, Ordering::Relaxed);
    let (renewals, slowest) = holder.await.unwrap();
    println!("{renewals} renewals through a full raft leader; the slowest took {slowest:?}");
    assert_eq!(follower.status().await.unwrap()["raft_term"], raft_term);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_cannot_be_accepted_waits_until_it_can() {
    let cluster = Cluster::single().await;
    let node = &cluster.nodes[0];
    // Opening a file must not fail, so the disk has to be idle first. Every due write happens within a second.
    let ready_at = Instant::now();
    eventually("the disk is idle", || async {
        let quiet = ready_at.elapsed().min(watermark_written_at(node).elapsed().unwrap_or_default());
        (quiet > Duration::from_secs(3)).then_some(())
    })
    .await;
    let pid = Pid::from_raw(i32::try_from(node.pid()).unwrap());
    let maximum = getrlimit(Resource::Nofile).maximum;
    // The node keeps its open files, and cannot open any more.
    let before = prlimit(pid, Resource::Nofile, Rlimit { current: Some(4), maximum }).unwrap();
    let mut connection = RawConnection::open(node).await;
    connection.send(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let failed = || node.output().matches("a connection was not accepted").count();
    eventually("the failure is logged", || async { (failed() > 0).then_some(()) }).await;
    prlimit(pid, Resource::Nofile, before).unwrap();
    assert_eq!(connection.receive(false).await.unwrap().status, 200);
    assert!(node.is_ready().await);
    assert_eq!(failed(), 1, "repeated failures are logged once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_raises_its_limit_of_open_files_and_warns_or_ends_if_the_hard_limit_is_low() {
    let limits = |node: &Node| {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", node.pid())).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        line.split_whitespace().skip(3).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let cluster = Cluster::single_not_ready(&[], Some("-S -n 64"));
    cluster.ready().await;
    let [soft, hard] = &limits(&cluster.nodes[0])[..] else { panic!("two limits") };
    assert_eq!(soft, hard);

    let cluster = Cluster::single_not_ready(&[], Some("-n 1000"));
    cluster.ready().await;
    assert_eq!(limits(&cluster.nodes[0]), ["1000", "1000"]);
    let output = cluster.nodes[0].output();
    assert!(
        output.contains("the limit of open files is low") && output.contains("\"open_files_max\":1000"),
        "{output}"
    );

    let mut cluster = Cluster::single_not_ready(&[], Some("-n 80"));
    assert_eq!(cluster.nodes[0].exit_code().await, Some(78));
    assert!(cluster.nodes[0].output().contains("may have 80 files open, and needs 93"));
}
