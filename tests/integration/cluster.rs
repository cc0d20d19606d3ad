//! Three nodes: forwarding, the loss of nodes, restarts, and what the log may not grow by.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{Cluster, Held, Node, campaign, campaign_with_key, eventually, get, post, renew, resign};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn every_node_answers_every_request() {
    let cluster = Cluster::three().await;
    let mut last_term = 0;
    for (place, url) in cluster.urls().iter().enumerate() {
        let room = format!("every-node-{place}");
        let held = Held::from_answer(&room, &campaign(url, &room, "worker-a", 30).await);
        assert!(held.term > last_term, "terms rise over all rooms");
        last_term = held.term;
        for other in cluster.urls() {
            let (status, body) = campaign(&other, &room, "worker-b", 30).await;
            assert_eq!((status, &body["status"]), (200, &json!("follower")), "{body}");
            assert_eq!(body["leader"]["term"], held.term);
            assert!((1..=30_100).contains(&body["retry_after_ms"].as_u64().unwrap()), "{body}");
            let (status, body) = get(&format!("{other}/elections/{room}")).await.unwrap();
            assert_eq!((status, &body["leader"]["candidate_id"]), (200, &json!("worker-a")), "{body}");
            let (status, body) = renew(&other, &room, &held.token).await.unwrap();
            assert_eq!((status, &body["leader"]["term"]), (200, &json!(held.term)), "{body}");
        }
        let elsewhere = &cluster.urls()[(place + 1) % 3];
        let (status, body) = resign(elsewhere, &room, &held.token).await.unwrap();
        assert_eq!((status, &body["previous_term"]), (200, &json!(held.term)), "{body}");
    }
    cluster.converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_show_the_same_expiry_for_a_lease() {
    let cluster = Cluster::three().await;
    campaign(&cluster.urls()[0], "same-expiry", "worker-a", 60).await;
    cluster.converged().await;
    let mut seen = Vec::new();
    for url in cluster.urls() {
        for query in ["", "?consistency=local"] {
            let (_, body) = get(&format!("{url}/elections/same-expiry{query}")).await.unwrap();
            seen.push(body["leader"]["expires_at"].clone());
        }
    }
    assert!(seen[0].is_string());
    assert!(seen.iter().all(|expiry| *expiry == seen[0]), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn losers_forgers_and_readers_append_nothing_to_the_log() {
    const EACH: usize = 1_000;
    let cluster = Cluster::three().await;
    let urls = cluster.urls();
    let held = Held::from_answer("judge-first", &campaign(&urls[0], "judge-first", "worker-a", 300).await);
    let forged = "A".repeat(43);
    let client = crate::harness::http();
    let before = log_index(&cluster.nodes[0]).await;
    let started = Instant::now();
    for count in 0..EACH {
        let url = &urls[count % 3];
        let answers = futures::future::join_all([
            client.post(format!("{url}/elections/judge-first/campaign")).json(&json!({"candidate_id": "b"})).send(),
            client.post(format!("{url}/elections/judge-first/renew")).json(&json!({"leader_token": forged})).send(),
            client.get(format!("{url}/elections/judge-first")).send(),
        ])
        .await;
        let codes: Vec<u16> = answers.into_iter().map(|answer| answer.unwrap().status().as_u16()).collect();
        assert_eq!(codes, [200, 404, 200]);
    }
    // A raft leader ticks once a second while leases live; nothing else may be in the log.
    let ticks = started.elapsed().as_secs() + 2;
    cluster.converged().await;
    let grown = log_index(&cluster.nodes[0]).await - before;
    assert!(grown <= ticks + 1, "{grown} entries for {} requests in {ticks} s", EACH * 3);
    assert_eq!(renew(&urls[0], "judge-first", &held.token).await.unwrap().0, 200);
}

async fn log_index(node: &Node) -> u64 {
    node.status().await.unwrap()["applied_index"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_survive_kill_9_of_the_raft_leader() {
    let mut cluster = Cluster::three().await;
    let held = Held::from_answer("kill-leader", &campaign(&cluster.urls()[0], "kill-leader", "worker-a", 60).await);
    for _ in 0..3 {
        let leader = cluster.raft_leader().await;
        cluster.nodes[leader].kill();
        let killed_at = Instant::now();
        let survivor = cluster.urls()[(leader + 1) % 3].clone();
        eventually("a survivor renews", || async {
            let (status, body) = renew(&survivor, "kill-leader", &held.token).await?;
            assert_ne!(status, 404, "{body}");
            (status == 200).then(|| assert_eq!(body["leader"]["term"], held.term))
        })
        .await;
        assert!(killed_at.elapsed() < Duration::from_secs(5), "{:?}", killed_at.elapsed());
        cluster.nodes[leader].start_again();
        cluster.ready().await;
    }
    cluster.converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_survive_kill_9_of_all_nodes_and_terms_keep_rising() {
    let mut cluster = Cluster::three().await;
    let mut held = Vec::new();
    for round in 0..3 {
        for count in 0..20 {
            let room = format!("kill-all-{round}-{count}");
            let url = &cluster.urls()[count % 3];
            held.push(Held::from_answer(&room, &campaign(url, &room, "worker-a", 300).await));
        }
        cluster.nodes.iter_mut().for_each(Node::kill);
        cluster.nodes.iter_mut().for_each(Node::start_again);
        cluster.ready().await;
        for (count, lease) in held.iter().enumerate() {
            let url = &cluster.urls()[count % 3];
            let (status, body) = renew(url, &lease.room, &lease.token).await.unwrap();
            assert_eq!((status, &body["leader"]["term"]), (200, &json!(lease.term)), "{body}");
        }
        let highest = held.iter().map(|lease| lease.term).max().unwrap();
        let fresh = format!("kill-all-fresh-{round}");
        held.push(Held::from_answer(&fresh, &campaign(&cluster.urls()[round], &fresh, "worker-b", 300).await));
        assert!(held.last().unwrap().term > highest);
    }
    cluster.converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_a_node_says_so_in_time_and_still_shows_what_it_knows() {
    let mut cluster = Cluster::three().await;
    let held = Held::from_answer("no-quorum", &campaign(&cluster.urls()[0], "no-quorum", "worker-a", 300).await);
    cluster.converged().await;
    let leader = cluster.raft_leader().await;
    let (left, other) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.nodes[leader].kill();
    cluster.nodes[other].kill();
    let url = cluster.nodes[left].url();

    let asked_at = Instant::now();
    let (status, body) = campaign(&url, "no-quorum-new", "worker-b", 5).await;
    assert_eq!((status, &body["code"]), (503, &json!("unavailable")), "{body}");
    assert!(asked_at.elapsed() < Duration::from_secs(6), "{:?}", asked_at.elapsed());
    let (status, body) = get(&format!("{url}/elections/no-quorum")).await.unwrap();
    assert_eq!((status, &body["code"]), (503, &json!("unavailable")), "{body}");
    let (status, body) = get(&format!("{url}/elections/no-quorum?consistency=local")).await.unwrap();
    assert_eq!((status, &body["leader"]["term"]), (200, &json!(held.term)), "{body}");
    assert_eq!(get(&format!("{url}/livez")).await.unwrap().0, 200);
    assert_eq!(get(&format!("{url}/status")).await.unwrap().0, 200);
    let term_before = cluster.nodes[left].status().await.unwrap()["raft_term"].clone();
    eventually("not ready", || async { (get(&format!("{url}/readyz")).await?.0 == 503).then_some(()) }).await;
    // Elections that can't be won don't raise the raft term, or the node would depose the raft leader on its return.
    assert_eq!(cluster.nodes[left].status().await.unwrap()["raft_term"], term_before);

    cluster.nodes[leader].start_again();
    cluster.nodes[other].start_again();
    cluster.ready().await;
    assert_eq!(renew(&url, "no-quorum", &held.token).await.unwrap().0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_hands_raft_leadership_over_and_exits_with_0() {
    let mut cluster = Cluster::three().await;
    let held = Held::from_answer("sigterm-room", &campaign(&cluster.urls()[0], "sigterm-room", "worker-a", 60).await);
    let leader = cluster.raft_leader().await;
    let started = Instant::now();
    cluster.nodes[leader].signal(Signal::TERM);
    let survivor = cluster.urls()[(leader + 1) % 3].clone();
    let mut longest = Duration::ZERO;
    while started.elapsed() < Duration::from_secs(1) {
        let asked_at = Instant::now();
        let (status, body) = renew(&survivor, "sigterm-room", &held.token).await.unwrap();
        assert_eq!(status, 200, "{body}");
        longest = longest.max(asked_at.elapsed());
    }
    assert_eq!(cluster.nodes[leader].exit_code().await, Some(0));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(cluster.nodes[leader].output().contains("handing raft leadership over"));
    assert!(longest < Duration::from_secs(1), "a hand-over is faster than an election: {longest:?}");
    cluster.nodes[leader].start_again();
    cluster.ready().await;
    cluster.converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_lost_is_given_again_by_any_node() {
    let mut cluster = Cluster::three().await;
    let key = "a-key-of-one-campaign-0001";
    let room = "same-again";
    let first = campaign_with_key(&cluster.urls()[0], room, "worker-a", key).await.unwrap();
    let held = Held::from_answer(room, &first);
    let leader = cluster.raft_leader().await;
    cluster.nodes[leader].kill();
    for url in cluster.urls().iter().enumerate().filter(|(place, _)| *place != leader).map(|(_, url)| url) {
        let mut last_valid_for = u64::MAX;
        for _ in 0..5 {
            let again = eventually("an answer", || async {
                campaign_with_key(url, room, "worker-a", key).await.filter(|(status, _)| *status == 200)
            })
            .await;
            let same = Held::from_answer(room, &again);
            assert_eq!((same.term, &same.token), (held.term, &held.token));
            let valid_for = again.1["valid_for_ms"].as_u64().unwrap();
            assert!(valid_for <= last_valid_for && valid_for <= 30_000);
            last_valid_for = valid_for;
        }
        assert_eq!(campaign(url, room, "worker-a", 30).await.1["status"], "follower", "without the key");
        let other_key = campaign_with_key(url, room, "worker-a", "a-key-of-another-0000001").await.unwrap();
        assert_eq!(other_key.1["status"], "follower");
        let other_candidate = campaign_with_key(url, room, "worker-b", key).await.unwrap();
        assert_eq!(other_candidate.1["status"], "follower");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_ends_at_its_deadline_and_not_before() {
    let cluster = Cluster::three().await;
    let url = cluster.urls()[cluster.follower().await].clone();
    let sent_at = Instant::now();
    let held = Held::from_answer("ends-in-time", &campaign(&url, "ends-in-time", "worker-a", 5).await);
    let granted_at = Instant::now();
    let next = eventually("the room goes to the next one", || async {
        let (status, body) = campaign(&url, "ends-in-time", "worker-b", 5).await;
        assert_eq!(status, 200, "{body}");
        (body["status"] == "leader").then_some((status, body))
    })
    .await;
    let next = Held::from_answer("ends-in-time", &next);
    assert!(
        granted_at.elapsed() + (granted_at - sent_at) >= Duration::from_secs(5),
        "early by {:?}",
        sent_at.elapsed()
    );
    assert!(granted_at.elapsed() < Duration::from_millis(5_500), "late: {:?}", granted_at.elapsed());
    assert!(next.term > held.term);
    for stale in [renew(&url, "ends-in-time", &held.token).await, resign(&url, "ends-in-time", &held.token).await] {
        let (status, body) = stale.unwrap();
        assert_eq!((status, &body["code"]), (404, &json!("lease_not_current")));
    }
    let (_, body) = get(&format!("{url}/elections/ends-in-time")).await.unwrap();
    assert_eq!(body["leader"]["term"], next.term);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_campaign_wins_as_soon_as_the_holder_resigns() {
    let cluster = Cluster::three().await;
    let urls = cluster.urls();
    let held = Held::from_answer("wait-for-it", &campaign(&urls[0], "wait-for-it", "worker-a", 60).await);
    let waiter = urls[1].clone();
    let waiting = tokio::spawn(async move {
        let body = json!({"candidate_id": "worker-b", "ttl_seconds": 30, "wait_seconds": 30});
        let answer = post(&format!("{waiter}/elections/wait-for-it/campaign"), body).await.unwrap();
        (answer, Instant::now())
    });
    // The waiter has lost its first try by the time that a second candidate's campaign is answered by its node.
    campaign(&urls[1], "wait-for-it", "worker-c", 30).await;
    assert_eq!(resign(&urls[2], "wait-for-it", &held.token).await.unwrap().0, 200);
    let resigned_at = Instant::now();
    let (answer, won_at) = waiting.await.unwrap();
    let won = Held::from_answer("wait-for-it", &answer);
    assert!(won.term > held.term);
    assert!(won_at - resigned_at < Duration::from_secs(1), "{:?}", won_at - resigned_at);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_was_down_past_the_purge_catches_up_by_snapshot() {
    let mut cluster = Cluster::three_with(&["--snapshot-every", "500", "--log-entries-kept", "1000"]).await;
    let down = cluster.follower().await;
    cluster.nodes[down].kill();
    let leader = cluster.raft_leader().await;
    let url = cluster.nodes[leader].url();
    let rooms: Vec<String> = (0..50).map(|count| format!("by-snapshot-{count}")).collect();
    let mut held = Vec::new();
    for room in &rooms {
        held.push(Held::from_answer(room, &campaign(&url, room, "worker-a", 300).await));
    }
    let client = crate::harness::http();
    for _ in 0..80 {
        let renewals = held.iter().map(|lease| {
            let request = client.post(format!("{url}/elections/{}/renew", lease.room));
            request.json(&json!({"leader_token": lease.token})).send()
        });
        for answer in futures::future::join_all(renewals).await {
            assert_eq!(answer.unwrap().status().as_u16(), 200);
        }
    }
    cluster.nodes[down].start_again();
    cluster.ready().await;
    cluster.converged().await;
    let status = cluster.nodes[down].status().await.unwrap();
    let (written, applied) =
        (status["log_entries_written"].as_u64().unwrap(), status["applied_index"].as_u64().unwrap());
    assert!(applied > 4_000 && written < 3_000, "most of it came by snapshot: {status}");
    let late = cluster.nodes[down].url();
    for lease in &held {
        let (_, body) = get(&format!("{late}/elections/{}?consistency=local", lease.room)).await.unwrap();
        assert_eq!(body["leader"]["term"], lease.term);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_found_no_cluster() {
    let mut cluster = Cluster::three_not_started(&[]);
    cluster.nodes[0].start_again();
    cluster.nodes[1].start_again();
    let url = cluster.nodes[0].url();
    let reason = eventually("a reason", || async {
        let (status, body) = get(&format!("{url}/readyz")).await?;
        let reason = body["details"].as_str()?.to_owned();
        (status == 503 && reason.contains("2 of 3")).then_some(reason)
    })
    .await;
    assert!(reason.contains("n3"), "{reason}");
    let (status, body) = campaign(&url, "not-founded", "worker-a", 5).await;
    assert_eq!((status, &body["code"]), (503, &json!("unavailable")), "{body}");
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
    let url = cluster.nodes[lost].url();
    let reason = eventually("a reason", || async {
        let (status, body) = get(&format!("{url}/readyz")).await?;
        let reason = body["details"].as_str()?.to_owned();
        (status == 503 && reason.contains("already belongs")).then_some(reason)
    })
    .await;
    assert!(reason.contains("1 of 3"), "{reason}");
    // The other two go on.
    let other = cluster.urls()[(lost + 1) % 3].clone();
    Held::from_answer("two-go-on", &campaign(&other, "two-go-on", "worker-a", 5).await);
}

/// A waiter's connection closes while its grant is under way; it asks another node with the same key, and is told
/// that it holds the room. The first node once gave the room back then, and so ended an acknowledged lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_room_won_again_by_its_key_is_not_given_back_for_the_connection_that_closed() {
    let cluster = Cluster::three().await;
    let urls = cluster.urls();
    let http = crate::harness::http();
    for round in 0..40 {
        let (room, key) = (format!("given-back-{round}"), format!("a-key-of-an-impatient-waiter-{round}"));
        let campaign = |url: &str| {
            let body = json!({"candidate_id": "worker-a", "ttl_seconds": 30, "wait_seconds": 10});
            http.post(format!("{url}/elections/{room}/campaign")).header("Idempotency-Key", &key).json(&body)
        };
        let _ = campaign(&urls[round % 3]).timeout(Duration::from_millis(1 + round as u64 / 3)).send().await;
        let url = &urls[(round + 1) % 3];
        let answer = eventually("an answer", || async {
            let response = campaign(url).send().await.ok()?;
            Some((response.status().as_u16(), response.json().await.ok()?)).filter(|(status, _)| *status == 200)
        })
        .await;
        let held = Held::from_answer(&room, &answer);
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            let (status, body) = get(&format!("{url}/elections/{room}")).await.unwrap();
            assert!(status != 200 || body["leader"]["term"] == held.term, "round {round}: {body}");
        }
    }
}
