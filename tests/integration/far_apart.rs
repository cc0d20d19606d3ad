//! Nodes so far apart that a message and its answer take longer than one heartbeat interval.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::caller::{Caller, Held};
use crate::harness::{Cluster, Node, eventually, fresh_address};

/// The delay in one direction. Both directions together take longer than the 100 ms between two heartbeats.
const DISTANCE: Duration = Duration::from_millis(70);

/// Longer than a raft election timeout. A raft leader takes no write if nothing was confirmed to it for that long.
const QUIET: Duration = Duration::from_millis(700);

/// Forwards connections from one address to another, with a delay.
async fn pass_on(front: SocketAddr, node: SocketAddr) {
    let listener = TcpListener::bind(front).await.unwrap();
    loop {
        let (near, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let Ok(far) = TcpStream::connect(node).await else { return };
            let ((near_reads, near_writes), (far_reads, far_writes)) = (near.into_split(), far.into_split());
            tokio::join!(carry(near_reads, far_writes), carry(far_reads, near_writes));
        });
    }
}

/// Copies bytes with a delay. A request and its answer are one piece each, so no piece waits behind another.
async fn carry(mut reads: impl AsyncRead + Unpin, mut writes: impl AsyncWrite + Unpin) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(length @ 1..) = reads.read(&mut piece).await {
        tokio::time::sleep(DISTANCE).await;
        if writes.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

/// Three nodes. Each reaches the others through an address that delays everything.
async fn far_apart(args: &[&str]) -> Cluster {
    let mut cluster = Cluster::three_not_started(args);
    let mut peers = Vec::new();
    for node in &cluster.nodes {
        let front = SocketAddr::from((fresh_address(), 7401));
        tokio::spawn(pass_on(front, (node.settings.address, 7401).into()));
        peers.push(format!("{}={front}", node.settings.name));
    }
    for node in &mut cluster.nodes {
        let place = node.settings.args.iter().position(|arg| arg == "--peers").expect("each node has peers");
        node.settings.args[place + 1] = peers.join(",");
        node.start_again();
    }
    cluster.ready().await;
    cluster
}

async fn is_renewed(caller: &Caller, lease: &Held) {
    eventually("the lease is renewed", || async {
        (caller.renew(&lease.room, &lease.token).await.status == 200).then_some(())
    })
    .await;
}

/// Openraft's timeout for an append is one heartbeat interval. When our messages used it too, nodes that were 70 ms
/// apart never confirmed an append, although their heartbeats arrived and kept the raft leader in office.
///
/// Openraft itself ends each heartbeat after one interval. It takes no write if nothing was confirmed for a raft
/// election timeout. So that timeout is longer here than the second between two ticks.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_further_apart_than_a_heartbeat_interval_serve() {
    let mut cluster = far_apart(&["--raft-election-timeout", "2s"]).await;
    for (count, caller) in Caller::of_each(&cluster).await.iter().enumerate() {
        let lease = caller.win(&format!("far-away-{count}"), "worker-a", 300).await;
        is_renewed(caller, &lease).await;
    }
    cluster.nodes.iter_mut().for_each(Node::kill);
}

/// With the default raft election timeout, such a raft leader loses its quorum after half a second without a write. A
/// bug made it stay in office then: it took no writes, and its heartbeats kept the others from electing another.
#[tokio::test(flavor = "multi_thread")]
async fn a_raft_leader_that_lost_its_quorum_makes_way_for_one_that_writes() {
    let mut cluster = far_apart(&[]).await;
    let callers = Caller::of_each(&cluster).await;
    let lease = eventually("a room is won", || async {
        let answer = callers[0].campaign("far-away", json!({"candidate_id": "worker-a", "ttl_seconds": 300})).await;
        (answer.status == 200).then(|| answer.held("far-away"))
    })
    .await;
    for caller in &callers {
        // The test needs a time without any write.
        tokio::time::sleep(QUIET).await;
        is_renewed(caller, &lease).await;
    }
    cluster.nodes.iter_mut().for_each(Node::kill);
}
