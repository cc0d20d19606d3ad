//! Nodes that are further from each other than one heartbeat interval.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::caller::{Caller, Held};
use crate::harness::{Cluster, Node, eventually, fresh_address};

/// One way. There and back is longer than the 100 ms between two heartbeats.
const DISTANCE: Duration = Duration::from_millis(70);

/// Longer than a raft election timeout, after which a raft leader that nothing was confirmed to takes no write.
const QUIET: Duration = Duration::from_millis(700);

/// Passes on what comes to one address to another, late.
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

/// A request and its answer are one piece each, so none waits behind another.
async fn carry(mut reads: impl AsyncRead + Unpin, mut writes: impl AsyncWrite + Unpin) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(length @ 1..) = reads.read(&mut piece).await {
        tokio::time::sleep(DISTANCE).await;
        if writes.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

/// Three nodes, each known to the others by an address that is far away.
async fn far_apart(args: &[&str]) -> Cluster {
    let mut cluster = Cluster::three_not_started(args);
    let mut peers = Vec::new();
    for node in &cluster.nodes {
        let front = SocketAddr::from((fresh_address(), 7401));
        tokio::spawn(pass_on(front, (node.settings.address, 7401).into()));
        peers.push(format!("{}={front}", node.settings.name));
    }
    for node in &mut cluster.nodes {
        let place = node.settings.args.iter().position(|arg| arg == "--peers").expect("they have peers");
        node.settings.args[place + 1] = peers.join(",");
        node.start_again();
    }
    cluster.ready().await;
    cluster
}

async fn is_renewed(caller: &Caller, lease: &Held) {
    eventually("it is renewed", || async {
        (caller.renew(&lease.room, &lease.token).await.status == 200).then_some(())
    })
    .await;
}

/// Openraft gives each append as long as one heartbeat interval, and its messages were given no more. Nodes 70 ms
/// apart then confirmed nothing at all, though their heartbeats arrived and kept a raft leader in office.
///
/// Openraft also ends each heartbeat after one interval, whatever we do, and takes no write once nothing was confirmed
/// for a raft election timeout. So that one is longer here than the second between two ticks.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_further_apart_than_a_heartbeat_serve() {
    let mut cluster = far_apart(&["--raft-election-timeout", "2s"]).await;
    for (count, caller) in Caller::of_each(&cluster).await.iter().enumerate() {
        let lease = caller.win(&format!("far-away-{count}"), "worker-a", 300).await;
        is_renewed(caller, &lease).await;
    }
    cluster.nodes.iter_mut().for_each(Node::kill);
}

/// With its own settings such a raft leader loses its quorum in any half second without a write. It then took no write
/// any more, and its heartbeats, which arrived, kept the others from electing one of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_raft_leader_that_hears_nothing_makes_way_for_one_that_writes() {
    let mut cluster = far_apart(&[]).await;
    let callers = Caller::of_each(&cluster).await;
    let lease = eventually("a room is won", || async {
        let answer = callers[0].campaign("far-away", json!({"candidate_id": "worker-a", "ttl_seconds": 300})).await;
        (answer.status == 200).then(|| answer.held("far-away"))
    })
    .await;
    for caller in &callers {
        // Nothing else may be written meanwhile: that is the case that is tried.
        tokio::time::sleep(QUIET).await;
        is_renewed(caller, &lease).await;
    }
    cluster.nodes.iter_mut().for_each(Node::kill);
}
