//! The peer listener rejects strangers, and peers that send wrong headers or bodies.

use std::time::Duration;

use openraft::raft::{AppendEntriesRequest, TransferLeaderRequest, VoteRequest};
use quorate::codec;
use quorate::peer::path;
use quorate::raft_types::{TypeConfig, Vote};
use rustix::process::Signal;

use crate::caller::Caller;
use crate::harness::{CLUSTER_SECRET, Cluster, eventually};
use crate::peer_caller::{Headers, Target, proof_of};

/// Every route that only members of the cluster may call.
const MEMBERS_ONLY: [&str; 6] =
    [path::APPEND, path::VOTE, path::PRE_VOTE, path::TRANSFER, path::FORWARD, path::SNAPSHOT];

/// Checks that a request is rejected by its head alone: it announces far more than any node reads, and sends none of
/// it.
async fn rejects_by_head(target: &Target, path: &str, headers: &Headers, wanted: u16) {
    const FAR_TOO_MUCH: usize = 1 << 40;
    let (status, text, took) = target.ask(path, headers, FAR_TOO_MUCH, b"").await;
    assert_eq!(status, wanted, "{path} {headers:?}: {text}");
    assert!(took < Duration::from_secs(1), "the node waited for the body: {path} {took:?}");
}

async fn rejects_strangers(target: &Target) {
    let member = target.headers();
    let right = proof_of(CLUSTER_SECRET);
    for wrong in [
        None,
        Some(proof_of("kT5vQ0xN2bW9sL7gH4jD8fR1mZ6cY3pB")),
        Some(format!("Bearer {CLUSTER_SECRET}")),
        Some("Bearer ".to_owned()),
        Some(right[..right.len() - 1].to_owned()),
        Some(right.replace("Bearer ", "")),
    ] {
        let stranger = Headers { authorization: wrong, ..member.clone() };
        for path in MEMBERS_ONLY.into_iter().chain([path::IDENTITY]) {
            rejects_by_head(target, path, &stranger, 401).await;
        }
        // A stranger does not learn which routes exist.
        assert_eq!(target.ask("/peer/v1/no-such-route", &stranger, 0, b"").await.0, 401);
    }
    assert_eq!(target.ask("/peer/v1/no-such-route", &member, 0, b"").await.0, 404);
}

async fn rejects_wrong_headers(target: &Target) {
    let member = target.headers();
    for protocol in ["1", "3", "0", "", "one", "-1"] {
        let headers = Headers { protocol: protocol.into(), ..member.clone() };
        for path in MEMBERS_ONLY.into_iter().chain([path::IDENTITY]) {
            rejects_by_head(target, path, &headers, 400).await;
        }
    }
    let other_cluster = Headers { cluster: uuid::Uuid::new_v4().to_string(), ..member.clone() };
    let other_node = Headers { to: (target.identity.node_id + 1).to_string(), ..member.clone() };
    for path in MEMBERS_ONLY {
        rejects_by_head(target, path, &other_cluster, 421).await;
        rejects_by_head(target, path, &other_node, 421).await;
        rejects_by_head(target, path, &Headers { cluster: "no-uuid".into(), ..member.clone() }, 400).await;
        rejects_by_head(target, path, &Headers { to: "n1".into(), ..member.clone() }, 400).await;
    }
}

async fn rejects_wrong_bodies(target: &Target) {
    let member = target.headers();
    for path in MEMBERS_ONLY {
        for body in wrong_bodies() {
            let (status, text, _) = target.ask(path, &member, body.len(), &body).await;
            assert_eq!(status, 400, "{path} {} bytes: {text}", body.len());
        }
    }
    let newer = newer_frame();
    for path in MEMBERS_ONLY {
        let (status, text, _) = target.ask(path, &member, newer.len(), &newer).await;
        assert_eq!(status, 400, "{path}: {text}");
        assert!(text.contains("a newer version of quorate wrote it in format 2"), "{path}: {text}");
    }
    for path in MEMBERS_ONLY.into_iter().filter(|path| *path != path::SNAPSHOT) {
        let body = vec![0; codec::PAYLOAD_BYTES_MAX + 65];
        assert_eq!(target.ask(path, &member, body.len(), &body).await.0, 413, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_and_broken_peers_are_rejected_and_do_no_harm() {
    let cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let held = callers[0].win("beside-rubbish", "worker-a", 300).await;
    for place in 0..3 {
        let target = Target::of(&cluster, place).await;
        assert_eq!(target.ask(path::IDENTITY, &target.headers(), 0, b"").await.0, 200, "the right proof is accepted");
        rejects_strangers(&target).await;
        rejects_wrong_headers(&target).await;
        rejects_wrong_bodies(&target).await;
        let snapshots = cluster.nodes[place].settings.data_dir.join("snapshots");
        assert_eq!(std::fs::read_dir(snapshots).unwrap().count(), 0, "a part of a snapshot is left");
    }
    for caller in &callers {
        assert_eq!(caller.renew("beside-rubbish", &held.token).await.held("beside-rubbish").term, held.term);
    }
    cluster.converged().await;
    for node in &cluster.nodes {
        let output = node.output();
        for bad in ["panicked", "\"level\":\"ERROR\""] {
            assert!(!output.contains(bad), "{bad}:\n{output}");
        }
    }
}

/// A stranger can repeat its requests without end, and put anything into the path.
#[tokio::test(flavor = "multi_thread")]
async fn rejected_requests_are_logged_once_a_minute_and_without_their_path() {
    let mut cluster = Cluster::single_with_peer_listener(None).await;
    let target = Target::of(&cluster, 0).await;
    let member = target.headers();
    let stranger = Headers { authorization: None, ..member.clone() };
    let other_cluster = Headers { cluster: uuid::Uuid::new_v4().to_string(), ..member };
    let long = format!("/peer/v1/{}", "canary".repeat(2_000));
    for path in [long.as_str(), path::APPEND] {
        for _ in 0..20 {
            assert_eq!(target.ask(path, &stranger, 0, b"").await.0, 401);
        }
    }
    for _ in 0..20 {
        assert_eq!(target.ask(path::APPEND, &other_cluster, 0, b"").await.0, 421);
    }

    let node = &mut cluster.nodes[0];
    node.signal(Signal::TERM);
    assert_eq!(node.exit_code().await, Some(0));
    let output = eventually("the node logs its end", || async {
        let output = node.output();
        output.contains("\"stopped\"").then_some(output)
    })
    .await;
    assert!(!output.contains("canary"), "the path is logged, although it may contain a secret");
    let logged = |what: &str| output.lines().filter(|line| line.contains(what)).map(str::to_owned).collect::<Vec<_>>();
    let [strangers, others] = ["without the right cluster secret", "from another cluster"].map(logged);
    assert_eq!(
        (strangers.len(), others.len()),
        (1, 1),
        "each reason is logged once a minute: {strangers:?} {others:?}"
    );
    assert!(strangers[0].contains("\"route\":\"none\"") && strangers[0].contains("127.0.0.1:"), "{strangers:?}");
    assert!(others[0].contains("127.0.0.1:"), "{others:?}");
}

/// Any process of the machine could use it to change every lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_peers_has_no_peer_listener() {
    let cluster = Cluster::single().await;
    let address = format!("{}:7401", cluster.nodes[0].settings.address);
    let refused = tokio::net::TcpStream::connect(&address).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

/// openraft adds one to raft terms and indexes. At the end of their range it panics, again at every start.
#[tokio::test(flavor = "multi_thread")]
async fn absurd_raft_terms_of_a_member_are_rejected_and_do_no_harm() {
    let mut cluster = Cluster::three().await;
    let held = Caller::of(&cluster.nodes[0]).await.win("beside-absurd-terms", "worker-a", 300).await;
    for place in 0..3 {
        let target = Target::of(&cluster, place).await;
        for raft_term in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 48) + 1, 1 << 40] {
            for (path, body) in raft_messages(raft_term) {
                let (status, text, _) = target.ask(path, &target.headers(), body.len(), &body).await;
                assert_eq!(status, 400, "{path} with raft term {raft_term}: {text}");
                assert!(text.contains("cannot be true"), "{text}");
            }
        }
    }
    for node in &cluster.nodes {
        let logged = node.output().matches("a raft message of a peer was rejected").count();
        assert_eq!(logged, 1, "a peer could fill the disk with log lines");
    }
    // A raft term that was stored would stop a node now.
    for node in &mut cluster.nodes {
        node.kill();
        node.start_again();
    }
    cluster.ready().await;
    let renewed = Caller::of(&cluster.nodes[1]).await.renew("beside-absurd-terms", &held.token).await;
    assert_eq!(renewed.held("beside-absurd-terms").term, held.term);
    cluster.converged().await;
}

/// Every raft message with a vote of this raft term, except for the snapshot, whose head is checked by the same code.
fn raft_messages(raft_term: u64) -> Vec<(&'static str, Vec<u8>)> {
    let append = AppendEntriesRequest::<TypeConfig> {
        vote: Vote::new_committed(raft_term, 1),
        prev_log_id: None,
        entries: Vec::new(),
        leader_commit: None,
    };
    let vote = VoteRequest::<TypeConfig>::new(Vote::new(raft_term, 1), None);
    let transfer = TransferLeaderRequest::<TypeConfig>::new(Vote::new_committed(raft_term, 1), 1, None);
    vec![
        (path::APPEND, codec::encode(&append).unwrap()),
        (path::VOTE, codec::encode(&vote).unwrap()),
        (path::PRE_VOTE, codec::encode(&vote).unwrap()),
        (path::TRANSFER, codec::encode(&transfer).unwrap()),
    ]
}

/// An intact frame of the next format.
fn newer_frame() -> Vec<u8> {
    let mut frame = codec::encode(&0_u64).unwrap();
    frame[0] = codec::FORMAT + 1;
    let checksum = crc32fast::hash(&frame[..5]);
    frame[5..9].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// Bodies that no handler may accept.
fn wrong_bodies() -> Vec<Vec<u8>> {
    let frame = codec::encode("an intact frame of a type that no handler expects").unwrap();
    let mut damaged = frame.clone();
    damaged[12] ^= 1;
    let mut longer_than_it_says = codec::encode(&0_u8).unwrap();
    longer_than_it_says.extend_from_slice(&frame);
    let mut other_format = frame.clone();
    other_format[0] = 9;
    vec![
        Vec::new(),
        b"{}".to_vec(),
        vec![0; 64],
        vec![0xff; 5000],
        frame[..frame.len() - 1].to_vec(),
        frame.clone(),
        damaged,
        longer_than_it_says,
        other_format,
        // A list that claims to be longer than any memory.
        codec::encode(&[u64::MAX; 4]).unwrap(),
    ]
}
