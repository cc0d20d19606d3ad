//! A raft leader that hangs: its connections stay open, and it answers nothing.

use std::time::{Duration, Instant};

use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use crate::caller::Caller;
use crate::harness::{Cluster, eventually};

/// Sends a campaign to a node every 20 ms for as long as the set lives. The answers are ignored.
fn keep_campaigning(requests: &mut JoinSet<()>, caller: Caller) {
    requests.spawn(async move {
        let mut sent = JoinSet::new();
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        for count in 0.. {
            pace.tick().await;
            let request = caller.request(Method::POST, &format!("/elections/in-the-stream-{count}/campaign"));
            sent.spawn(request.json(&json!({"candidate_id": "worker-a"})).send());
        }
    });
}

/// A raft follower that knows the next raft leader forwards to it, although requests to the last one are still in
/// flight. A bug made new requests wait until each of those had timed out.
#[tokio::test(flavor = "multi_thread")]
async fn requests_in_flight_to_a_hung_raft_leader_do_not_delay_requests_to_the_next_one() {
    let cluster = Cluster::three().await;
    let raft_leader = cluster.raft_leader().await;
    let others: Vec<usize> = (0..3).filter(|place| *place != raft_leader).collect();
    let mut callers = Vec::new();
    let mut held = Vec::new();
    let mut requests = JoinSet::new();
    for &place in &others {
        let caller = Caller::of(&cluster.nodes[place]).await;
        let room = format!("held-for-5-s-{place}");
        held.push(caller.win(&room, "holder", 5).await);
        keep_campaigning(&mut requests, Caller::of(&cluster.nodes[place]).await);
        callers.push(caller);
    }
    cluster.nodes[raft_leader].signal(Signal::STOP);
    let stopped_at = Instant::now();
    let follows = eventually("the raft follower knows the next raft leader", || async {
        let mut statuses = Vec::new();
        for &place in &others {
            statuses.push(cluster.nodes[place].status().await?);
        }
        let won = statuses.iter().position(|status| status["role"] == "raft_leader")?;
        (statuses[1 - won]["raft_leader"] == statuses[won]["name"]).then_some(1 - won)
    })
    .await;
    let known_at = Instant::now();
    let (caller, held) = (&callers[follows], &held[follows]);
    let (campaigned, renewed) = tokio::join!(
        caller.campaign("after-it", json!({"candidate_id": "worker-b"})),
        caller.renew(&held.room, &held.token)
    );
    let took = known_at.elapsed();
    println!("the next raft leader was known after {:?}, and both answers came {took:?} later", known_at - stopped_at);
    campaigned.held("after-it");
    assert_eq!(renewed.held(&held.room).term, held.term);
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// A request that was still in the queue when its deadline came has certainly changed nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_never_sent_to_a_hung_raft_leader_is_answered_with_unavailable() {
    let cluster = Cluster::three().await;
    let follows = cluster.follower().await;
    let caller = Caller::of(&cluster.nodes[follows]).await;
    let room = "renewed-too-late";
    let held = caller.win(room, "holder", 5).await;
    caller.status(room).await;
    (0..3).filter(|place| *place != follows).for_each(|place| cluster.nodes[place].signal(Signal::STOP));
    let mut requests = JoinSet::new();
    for count in 0..32 {
        let request = caller.request(Method::POST, &format!("/elections/takes-a-place-{count}/campaign"));
        requests.spawn(request.json(&json!({"candidate_id": "worker-a"})).send());
        // Wait for an answer after each request, so that the node does not forward several of them together.
        caller.local_status(room).await;
    }
    let renewed = caller.renew(room, &held.token).await;
    renewed.is_error(503, "unavailable");
}
