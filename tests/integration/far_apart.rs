//! Nodes that are further from each other than one heartbeat interval.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Cluster, Held, Node, campaign, eventually, fresh_address, renew};

/// One way. There and back is longer than the 100 ms between two heartbeats.
const DISTANCE: Duration = Duration::from_millis(70);

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

/// Openraft gives each append as long as one heartbeat interval, and its messages were given no more. Nodes 70 ms
/// apart then confirmed nothing at all, though their heartbeats arrived and kept a raft leader in office.
///
/// Openraft also ends each heartbeat after one interval, whatever we do, and takes no write once nothing was confirmed
/// for a raft election timeout. So that one is longer here than the second between two ticks.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_further_apart_than_a_heartbeat_serve() {
    let mut cluster = Cluster::three_not_started(&["--raft-election-timeout", "2s"]);
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
    for (count, url) in cluster.urls().iter().enumerate() {
        let room = format!("far-away-{count}");
        let lease = Held::from_answer(&room, &campaign(url, &room, "worker-a", 300).await);
        eventually("it is renewed", || async {
            let (status, _) = renew(url, &room, &lease.token).await?;
            (status == 200).then_some(())
        })
        .await;
    }
    cluster.nodes.iter_mut().for_each(Node::kill);
}
