//! Three nodes: forwarding, killed nodes, restarts, snapshots, and requests that must not make the log grow.

use std::time::{Duration, Instant};

use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;

use crate::caller::{Caller, fill_log};
use crate::harness::{Cluster, Node, eventually};
use crate::storage_fixtures::copy_tree;

#[tokio::test(flavor = "multi_thread")]
async fn every_node_answers_every_kind_of_request() {
    let cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let mut last_term = 0;
    for (place, caller) in callers.iter().enumerate() {
        let room = format!("every-node-{place}");
        let held = caller.win(&room, "worker-a", 30).await;
        assert!(held.term > last_term, "terms rise across all rooms");
        last_term = held.term;
        for other in &callers {
            let occupied = other.campaign(&room, json!({"candidate_id": "worker-b"})).await;
            occupied.is_follower();
            assert_eq!(occupied.body["leader"]["term"], held.term);
            let retry_after_ms = occupied.body["retry_after_ms"].as_u64().unwrap();
            assert!((1..=30_100).contains(&retry_after_ms), "{}", occupied.text);
            let seen = other.status(&room).await;
            assert_eq!((seen.status, &seen.body["leader"]["candidate_id"]), (200, &json!("worker-a")), "{}", seen.text);
            assert_eq!(other.renew(&room, &held.token).await.held(&room).term, held.term);
        }
        let resigned = callers[(place + 1) % 3].resign(&room, &held.token).await;
        assert_eq!((resigned.status, &resigned.body["previous_term"]), (200, &json!(held.term)), "{}", resigned.text);
    }
    cluster.converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_show_the_same_expiry_for_a_lease() {
    let cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    callers[0].win("same-expiry", "worker-a", 60).await;
    cluster.converged().await;
    let mut seen = Vec::new();
    for caller in &callers {
        for status in [caller.status("same-expiry").await, caller.local_status("same-expiry").await] {
            seen.push(status.body["leader"]["expires_at"].clone());
        }
    }
    assert!(seen[0].is_string());
    assert!(seen.iter().all(|expiry| *expiry == seen[0]), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_change_nothing_append_nothing_to_the_log() {
    const EACH: usize = 1_000;
    let cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let held = callers[0].win("judge-first", "worker-a", 300).await;
    let forged = "A".repeat(43);
    let before = log_index(&cluster.nodes[0]).await;
    let started = Instant::now();
    for count in 0..EACH {
        let caller = &callers[count % 3];
        let (occupied, stale, seen) = tokio::join!(
            caller.campaign("judge-first", json!({"candidate_id": "b"})),
            caller.renew("judge-first", &forged),
            caller.status("judge-first"),
        );
        occupied.is_follower();
        stale.is_error(404, "lease_not_current");
        assert_eq!(seen.status, 200);
    }
    // While there are leases, the raft leader appends a tick every second. Nothing else may be in the log.
    let ticks = started.elapsed().as_secs() + 2;
    cluster.converged().await;
    let grown = log_index(&cluster.nodes[0]).await - before;
    assert!(grown <= ticks + 1, "{grown} entries for {} requests in {ticks} s", EACH * 3);
    callers[0].renew("judge-first", &held.token).await.held("judge-first");
}

async fn log_index(node: &Node) -> u64 {
    node.status().await.unwrap()["applied_index"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_survive_kill_9_of_the_raft_leader() {
    let mut cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let held = callers[0].win("kill-leader", "worker-a", 60).await;
    for _ in 0..3 {
        let raft_leader = cluster.raft_leader().await;
        cluster.nodes[raft_leader].kill();
        let killed_at = Instant::now();
        let survivor = &callers[(raft_leader + 1) % 3];
        eventually("a survivor renews", || async {
            let renewed = survivor.renew("kill-leader", &held.token).await;
            assert_ne!(renewed.status, 404, "{}", renewed.text);
            (renewed.status == 200).then(|| assert_eq!(renewed.body["leader"]["term"], held.term))
        })
        .await;
        assert!(killed_at.elapsed() < Duration::from_secs(5), "{:?}", killed_at.elapsed());
        cluster.nodes[raft_leader].start_again();
        cluster.ready().await;
    }
    cluster.converged().await;
}

/// Without a peer listener no other node could reach it.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_three_does_not_start_without_its_peers() {
    let mut cluster = Cluster::three().await;
    let node = &mut cluster.nodes[0];
    node.kill();
    let peers = node.settings.args.iter().position(|arg| arg == "--peers").expect("each node has peers");
    node.settings.args.drain(peers..peers + 2);
    node.start_again();
    assert_eq!(node.exit_code().await, Some(78));
    assert!(node.output().contains("--peers: this node belongs to a cluster of 3 nodes"), "{}", node.output());
}

/// An operator copies the data folders of stopped nodes, and puts the copies back later. All grants in between are
/// forgotten, so their terms are known to the holders alone.
async fn old_copies_give_no_term_again(mut cluster: Cluster) {
    let nodes = cluster.nodes.len();
    let callers = Caller::of_each(&cluster).await;
    callers[0].win("before-the-copy", "worker-a", 300).await;
    let copies = tempfile::tempdir().unwrap();
    let copy_of = |node: &Node| copies.path().join(&node.settings.name);
    cluster.nodes.iter_mut().for_each(Node::kill);
    for node in &cluster.nodes {
        copy_tree(&node.settings.data_dir, &copy_of(node));
    }
    cluster.nodes.iter_mut().for_each(Node::start_again);
    cluster.ready().await;
    let mut highest = 0;
    for count in 0..50 {
        let held = callers[count % nodes].win(&format!("after-the-copy-{count}"), "worker-a", 300).await;
        highest = highest.max(held.term);
    }
    cluster.nodes.iter_mut().for_each(Node::kill);
    for node in &cluster.nodes {
        std::fs::remove_dir_all(&node.settings.data_dir).unwrap();
        copy_tree(&copy_of(node), &node.settings.data_dir);
    }
    cluster.nodes.iter_mut().for_each(Node::start_again);
    cluster.ready().await;
    for (count, caller) in callers.iter().enumerate() {
        let held = caller.win(&format!("after-the-copy-{count}"), "worker-b", 300).await;
        assert!(held.term > highest, "term {} after {highest} had been granted", held.term);
        highest = held.term;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_copies_of_three_data_folders_give_no_term_again() {
    old_copies_give_no_term_again(Cluster::three().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_copy_of_a_single_data_folder_gives_no_term_again() {
    old_copies_give_no_term_again(Cluster::single().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_survive_kill_9_of_all_nodes_and_terms_keep_rising() {
    let mut cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let mut held = Vec::new();
    for round in 0..3 {
        for count in 0..20 {
            held.push(callers[count % 3].win(&format!("kill-all-{round}-{count}"), "worker-a", 300).await);
        }
        cluster.nodes.iter_mut().for_each(Node::kill);
        cluster.nodes.iter_mut().for_each(Node::start_again);
        cluster.ready().await;
        for (count, lease) in held.iter().enumerate() {
            let renewed = callers[count % 3].renew(&lease.room, &lease.token).await;
            assert_eq!(renewed.held(&lease.room).term, lease.term);
        }
        let highest = held.iter().map(|lease| lease.term).max().unwrap();
        let fresh = callers[round].win(&format!("kill-all-fresh-{round}"), "worker-b", 300).await;
        assert!(fresh.term > highest);
        held.push(fresh);
    }
    cluster.converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_quorum_is_unavailable_within_its_deadline_and_still_answers_local_reads() {
    let mut cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let held = callers[0].win("no-quorum", "worker-a", 300).await;
    cluster.converged().await;
    let raft_leader = cluster.raft_leader().await;
    let (left, other) = ((raft_leader + 1) % 3, (raft_leader + 2) % 3);
    cluster.nodes[raft_leader].kill();
    cluster.nodes[other].kill();
    let caller = &callers[left];

    let asked_at = Instant::now();
    let body = json!({"candidate_id": "worker-b", "ttl_seconds": 5});
    caller.campaign("no-quorum-new", body).await.is_error(503, "unavailable");
    assert!(asked_at.elapsed() < Duration::from_secs(6), "{:?}", asked_at.elapsed());
    caller.status("no-quorum").await.is_error(503, "unavailable");
    let known = caller.local_status("no-quorum").await;
    assert_eq!((known.status, &known.body["leader"]["term"]), (200, &json!(held.term)), "{}", known.text);
    assert_eq!(caller.get("/livez").await.status, 200);
    assert_eq!(caller.get("/status").await.status, 200);
    let term_before = cluster.nodes[left].status().await.unwrap()["raft_term"].clone();
    eventually("the node is not ready", || async { (caller.get("/readyz").await.status == 503).then_some(()) }).await;
    // A raft election that cannot be won does not raise the raft term. A higher term would depose the raft leader when
    // it comes back.
    assert_eq!(cluster.nodes[left].status().await.unwrap()["raft_term"], term_before);

    cluster.nodes[raft_leader].start_again();
    cluster.nodes[other].start_again();
    cluster.ready().await;
    caller.renew("no-quorum", &held.token).await.held("no-quorum");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sigterm_a_node_hands_raft_leadership_over_and_exits_with_0() {
    let mut cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let held = callers[0].win("sigterm-room", "worker-a", 60).await;
    let raft_leader = cluster.raft_leader().await;
    let started = Instant::now();
    cluster.nodes[raft_leader].signal(Signal::TERM);
    let survivor = &callers[(raft_leader + 1) % 3];
    let mut longest = Duration::ZERO;
    while started.elapsed() < Duration::from_secs(1) {
        let asked_at = Instant::now();
        survivor.renew("sigterm-room", &held.token).await.held("sigterm-room");
        longest = longest.max(asked_at.elapsed());
    }
    assert_eq!(cluster.nodes[raft_leader].exit_code().await, Some(0));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(cluster.nodes[raft_leader].output().contains("handing raft leadership over"));
    assert!(longest < Duration::from_secs(1), "a handover is faster than a raft election: {longest:?}");
    cluster.nodes[raft_leader].start_again();
    cluster.ready().await;
    cluster.converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_gives_the_same_answer_again_for_the_same_key() {
    let mut cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let key = "a-key-of-one-campaign-0001";
    let room = "same-again";
    let held = callers[0].campaign_with_key(room, "worker-a", key).await.held(room);
    let raft_leader = cluster.raft_leader().await;
    cluster.nodes[raft_leader].kill();
    for caller in callers.iter().enumerate().filter(|(place, _)| *place != raft_leader).map(|(_, caller)| caller) {
        let mut last_valid_for = u64::MAX;
        for _ in 0..5 {
            let again = eventually("the campaign succeeds", || async {
                Some(caller.campaign_with_key(room, "worker-a", key).await).filter(|answer| answer.status == 200)
            })
            .await;
            let same = again.held(room);
            assert_eq!((same.term, &same.token), (held.term, &held.token));
            let valid_for = again.body["valid_for_ms"].as_u64().unwrap();
            assert!(valid_for <= last_valid_for && valid_for <= 30_000);
            last_valid_for = valid_for;
        }
        let without_key = caller.campaign(room, json!({"candidate_id": "worker-a"})).await;
        let other_key = caller.campaign_with_key(room, "worker-a", "a-key-of-another-0000001").await;
        let other_candidate = caller.campaign_with_key(room, "worker-b", key).await;
        for answer in [without_key, other_key, other_candidate] {
            answer.is_follower();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_ends_at_its_deadline_and_not_earlier() {
    let cluster = Cluster::three().await;
    let caller = Caller::of(&cluster.nodes[cluster.follower().await]).await;
    let room = "ends-in-time";
    let sent_at = Instant::now();
    let held = caller.win(room, "worker-a", 5).await;
    let granted_at = Instant::now();
    let next = eventually("the next contender wins the room", || async {
        let answer = caller.campaign(room, json!({"candidate_id": "worker-b", "ttl_seconds": 5})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        (answer.body["status"] == "leader").then(|| answer.held(room))
    })
    .await;
    assert!(
        granted_at.elapsed() + (granted_at - sent_at) >= Duration::from_secs(5),
        "early by {:?}",
        sent_at.elapsed()
    );
    assert!(granted_at.elapsed() < Duration::from_millis(5_500), "late: {:?}", granted_at.elapsed());
    assert!(next.term > held.term);
    caller.renew(room, &held.token).await.is_error(404, "lease_not_current");
    caller.resign(room, &held.token).await.is_error(404, "lease_not_current");
    assert_eq!(caller.status(room).await.body["leader"]["term"], next.term);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_campaign_wins_as_soon_as_the_holder_resigns() {
    let cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    let room = "wait-for-it";
    let held = callers[0].win(room, "worker-a", 60).await;
    let waiter = callers[1].clone();
    let waiting = tokio::spawn(async move {
        let body = json!({"candidate_id": "worker-b", "ttl_seconds": 30, "wait_seconds": 30});
        let answer = waiter.campaign(room, body).await;
        (answer, Instant::now())
    });
    // Once its node has answered a later campaign, the waiter's first try has failed, and it waits.
    callers[1].campaign(room, json!({"candidate_id": "worker-c"})).await;
    assert_eq!(callers[2].resign(room, &held.token).await.status, 200);
    let resigned_at = Instant::now();
    let (answer, won_at) = waiting.await.unwrap();
    let won = answer.held(room);
    assert!(won.term > held.term);
    assert!(won_at - resigned_at < Duration::from_secs(1), "{:?}", won_at - resigned_at);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raft_follower_that_missed_purged_entries_catches_up_by_snapshot() {
    let mut cluster = Cluster::three_with(&["--snapshot-every", "500", "--log-entries-kept", "1000"]).await;
    let down = cluster.follower().await;
    cluster.nodes[down].kill();
    let raft_leader = cluster.raft_leader().await;
    let held = fill_log(&Caller::of(&cluster.nodes[raft_leader]).await, 4_000).await;
    cluster.nodes[down].start_again();
    cluster.ready().await;
    cluster.converged().await;
    let status = cluster.nodes[down].status().await.unwrap();
    let (written, applied) =
        (status["log_entries_written"].as_u64().unwrap(), status["applied_index"].as_u64().unwrap());
    assert!(applied > 4_000 && written < 3_000, "most entries came by snapshot: {status}");
    let late = Caller::of(&cluster.nodes[down]).await;
    for lease in &held {
        assert_eq!(late.local_status(&lease.room).await.body["leader"]["term"], lease.term);
    }
}

/// Waits until the node is not ready for a reason that contains these words, and returns the reason.
async fn not_ready_because(caller: &Caller, words: &str) -> String {
    eventually(words, || async {
        let answer = caller.get("/readyz").await;
        let reason = answer.body["details"].as_str()?.to_owned();
        (answer.status == 503 && reason.contains(words)).then_some(reason)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_nodes_do_not_found_a_cluster() {
    let mut cluster = Cluster::three_not_started(&[]);
    cluster.nodes[0].start_again();
    cluster.nodes[1].start_again();
    let caller = Caller::of(&cluster.nodes[0]).await;
    let reason = not_ready_because(&caller, "2 of 3").await;
    assert!(reason.contains("n3"), "{reason}");
    caller.campaign("not-founded", json!({"candidate_id": "worker-a"})).await.is_error(503, "unavailable");
    cluster.nodes[2].start_again();
    cluster.ready().await;
    let ids: Vec<_> = futures::future::join_all(cluster.nodes.iter().map(Node::status)).await;
    let ids: Vec<_> = ids.iter().map(|status| status.as_ref().unwrap()["cluster_id"].clone()).collect();
    assert!(ids[0].is_string() && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_an_empty_disk_does_not_found_a_second_cluster() {
    let mut cluster = Cluster::three().await;
    let lost = cluster.follower().await;
    cluster.nodes[lost].kill();
    std::fs::remove_dir_all(&cluster.nodes[lost].settings.data_dir).unwrap();
    cluster.nodes[lost].start_again();
    let reason = not_ready_because(&Caller::of(&cluster.nodes[lost]).await, "belongs to a cluster already").await;
    assert!(reason.contains("1 of 3"), "{reason}");
    // The other two still serve.
    Caller::of(&cluster.nodes[(lost + 1) % 3]).await.win("two-go-on", "worker-a", 5).await;
}

/// A waiter closes its connection while its campaign is in flight. It repeats the campaign at another node with the
/// same key, and is told that it holds the room. A bug made the first node then resign for it, which ended an
/// acknowledged lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_connection_does_not_end_a_lease_that_another_node_has_acknowledged_for_its_key() {
    let cluster = Cluster::three().await;
    let callers = Caller::of_each(&cluster).await;
    for round in 0..40 {
        let (room, key) = (format!("given-back-{round}"), format!("a-key-of-an-impatient-waiter-{round}"));
        let campaign = |caller: &Caller| {
            let body = json!({"candidate_id": "worker-a", "ttl_seconds": 30, "wait_seconds": 10});
            let request = caller.request(Method::POST, &format!("/elections/{room}/campaign"));
            request.header("Idempotency-Key", &key).json(&body)
        };
        let impatient = campaign(&callers[round % 3]).timeout(Duration::from_millis(1 + round as u64 / 3));
        let _ = callers[round % 3].try_send(impatient).await;
        let caller = &callers[(round + 1) % 3];
        let answer = eventually("the campaign succeeds", || async {
            caller.try_send(campaign(caller)).await.filter(|answer| answer.status == 200)
        })
        .await;
        let held = answer.held(&room);
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            let seen = caller.status(&room).await;
            assert!(seen.status != 200 || seen.body["leader"]["term"] == held.term, "round {round}: {}", seen.text);
        }
    }
}
