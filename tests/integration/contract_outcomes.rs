//! Answers to requests whose outcome is not known yet.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::caller::{Answer, Caller, Held};
use crate::harness::{Cluster, eventually};

/// Three nodes, the place of the raft leader, and a caller of each node.
async fn three() -> (Cluster, usize, Vec<Caller>) {
    let cluster = Cluster::three().await;
    let raft_leader = cluster.raft_leader().await;
    let callers = Caller::of_each(&cluster).await;
    (cluster, raft_leader, callers)
}

/// Stops or continues the two raft followers. Without them the raft leader can propose, but commits nothing.
fn signal_others(cluster: &Cluster, raft_leader: usize, signal: Signal) {
    cluster
        .nodes
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != raft_leader)
        .for_each(|(_, node)| node.signal(signal));
}

/// A raft leader without a quorum proposes a change and does not learn its outcome. A request that changes nothing is
/// not proposed, so the raft leader knows that nothing happened.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_was_not_committed_has_an_unknown_outcome_until_the_key_settles_it() {
    const KEY: &str = "a-key-that-settles-it-01";
    let (cluster, raft_leader, callers) = three().await;
    let leader = &callers[raft_leader];
    let renewing = leader.win("unknown-renewal", "holder", 60).await;
    let resigning = leader.win("unknown-resignation", "holder", 60).await;

    signal_others(&cluster, raft_leader, Signal::STOP);
    let asked_at = Instant::now();
    let (won, renewed, resigned, lost, forged, seen, seen_here) = tokio::join!(
        leader.campaign_with_key("unknown-campaign", "worker-a", KEY),
        leader.renew("unknown-renewal", &renewing.token),
        leader.resign("unknown-resignation", &resigning.token),
        leader.campaign("unknown-renewal", json!({"candidate_id": "worker-b"})),
        leader.renew("unknown-renewal", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        leader.status("unknown-renewal"),
        leader.local_status("unknown-renewal"),
    );
    let took = asked_at.elapsed();
    signal_others(&cluster, raft_leader, Signal::CONT);
    for (name, answer) in [("campaign", &won), ("renewal", &renewed), ("resignation", &resigned)] {
        answer.is_error(503, "outcome_unknown").has_fields(503, "code details error request_id");
        assert!(answer.body["details"].as_str().unwrap().contains("Idempotency-Key"), "{name}: {}", answer.text);
        assert_eq!(answer.header("retry-after"), "", "{name}: the caller may retry at once");
    }
    for answer in [&lost, &forged, &seen] {
        answer.is_error(503, "unavailable");
    }
    assert_eq!((seen_here.status, &seen_here.body["leader"]["term"]), (200, &json!(renewing.term)));
    assert!((4_500..9_000).contains(&took.as_millis()), "the deadline of a request is 5 s: {took:?}");

    cluster.ready().await;
    let mut terms = Vec::new();
    for caller in &callers {
        let held =
            settled(|| caller.campaign_with_key("unknown-campaign", "worker-a", KEY)).await.held("unknown-campaign");
        let seen = settled(|| caller.status("unknown-campaign")).await;
        assert_eq!(seen.body["leader"]["term"], held.term);
        terms.push((held.term, held.token));
    }
    assert!(terms.iter().all(|term| *term == terms[0]), "one campaign got several leases: {terms:?}");
    let renewed = settled(|| leader.renew("unknown-renewal", &renewing.token)).await;
    assert_eq!(renewed.held("unknown-renewal").term, renewing.term);
    let resigned = settled(|| leader.resign("unknown-resignation", &resigning.token)).await;
    assert!(resigned.status == 200 || resigned.body["code"] == "lease_not_current", "{}", resigned.text);
    let left = settled(|| leader.status("unknown-resignation")).await;
    assert_eq!(left.body["status"], "vacant", "one of the two resignations was applied");
    cluster.converged().await;
}

/// Repeats a request until the answer is not 503, which takes until there is a raft leader with a quorum.
async fn settled<F: Future<Output = Answer>>(ask: impl Fn() -> F) -> Answer {
    eventually("an answer", || async {
        let answer = ask().await;
        (answer.status != 503).then_some(answer)
    })
    .await
}

/// When a wait ends while a try is in flight, the outcome of that try is the answer. A second try at the same time
/// could find the room occupied by the lease of the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_ends_during_a_try_is_answered_with_the_outcome_of_that_try() {
    const ROOMS: usize = 8;
    let (cluster, raft_leader, callers) = three().await;
    let leader = &callers[raft_leader];
    let asked_at = Instant::now();
    for count in 0..ROOMS {
        let room = format!("last-try-room-{count}");
        leader.win(&room, "holder", 5).await;
    }
    let waits = futures::future::join_all((0..ROOMS).map(|count| async move {
        let room = format!("last-try-room-{count}");
        let body = json!({"candidate_id": "waiter", "ttl_seconds": 60, "wait_seconds": 6});
        (leader.campaign(&room, body).await, room)
    }));
    let pause = async {
        // Stop the raft followers shortly before the leases expire. Half a second after that the waiters try again.
        eventually("the leases are about to expire", || async {
            let seen = leader.local_status("last-try-room-0").await;
            (seen.body["retry_after_ms"].as_u64()? < 800).then_some(())
        })
        .await;
        signal_others(&cluster, raft_leader, Signal::STOP);
        // At this time every wait is over. Every try is still in flight, because its deadline is 5 s.
        tokio::time::sleep_until((asked_at + Duration::from_millis(7_500)).into()).await;
        signal_others(&cluster, raft_leader, Signal::CONT);
    };
    let (answers, ()) = tokio::join!(waits, pause);
    for (answer, room) in answers {
        let held: Held = answer.held(&room);
        assert_eq!(answer.body["leader"]["candidate_id"], "waiter");
        let renewed = settled(|| leader.renew(&room, &held.token)).await;
        assert_eq!(
            renewed.held(&room).term,
            held.term,
            "a contender that was told that it holds the room does hold it"
        );
    }
}

/// The places of the other nodes.
fn others(place: usize) -> impl Iterator<Item = usize> {
    (0..3).filter(move |other| *other != place)
}

/// Waits until the lease has less than half a second left, as this node knows it.
async fn about_to_end(caller: &Caller, room: &str) {
    eventually("the lease is about to expire", || async {
        let seen = caller.local_status(room).await;
        (seen.body["retry_after_ms"].as_u64()? < 500).then_some(())
    })
    .await;
}

/// The first try of a waiter reaches a raft leader that never answers. The later tries reach nobody, so they certainly
/// change nothing. For the whole request that is not certain.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_with_a_try_of_unknown_outcome_does_not_end_as_unavailable() {
    const ROOM: &str = "unknown-while-waiting";
    let (mut cluster, raft_leader, callers) = three().await;
    let waits_at = (raft_leader + 1) % 3;
    let waiter = callers[waits_at].clone();
    callers[raft_leader].win(ROOM, "holder", 5).await;
    let held_at = Instant::now();
    let waiting = tokio::spawn(async move {
        let body = json!({"candidate_id": "waiter", "wait_seconds": 12});
        waiter.campaign(ROOM, body).await
    });
    about_to_end(&callers[waits_at], ROOM).await;
    others(waits_at).for_each(|place| cluster.nodes[place].signal(Signal::STOP));
    // At this time the waiter has tried again, half a second after the lease expired.
    tokio::time::sleep_until((held_at + Duration::from_millis(8_000)).into()).await;
    others(waits_at).for_each(|place| cluster.nodes[place].kill());
    waiting.await.unwrap().is_error(503, "outcome_unknown");
}

/// Makes the waiters at one node win all these rooms while that node is stopped, so that it does not hear of it.
/// Returns when the tries were sent.
async fn send_tries_into_silence(
    cluster: &Cluster,
    held_at: Instant,
    waits_at: usize,
    (leader, waiter): (&Caller, &Caller),
    rooms: &[String],
) -> Instant {
    let signal = |places: &[usize], signal| places.iter().for_each(|place| cluster.nodes[*place].signal(signal));
    let others: Vec<usize> = others(waits_at).collect();
    // The waiters' node must not hear that the leases expire. Its own next try is due half a second after that.
    about_to_end(waiter, &rooms[0]).await;
    signal(&[waits_at], Signal::STOP);
    for room in rooms {
        eventually("the room is vacant", || async {
            (leader.status(room).await.body["status"] == "vacant").then_some(())
        })
        .await;
    }
    tokio::time::sleep_until((held_at + Duration::from_millis(6_000)).into()).await;
    // Run the waiters' node only while the other nodes are stopped, until it has sent the tries.
    let mut window = Duration::from_millis(300);
    loop {
        signal(&others, Signal::STOP);
        signal(&[waits_at], Signal::CONT);
        tokio::time::sleep(window).await;
        signal(&[waits_at], Signal::STOP);
        let sent_at = Instant::now();
        signal(&others, Signal::CONT);
        let all_won = async {
            for room in rooms {
                eventually("the waiter wins the room", || async {
                    (leader.status(room).await.body["leader"]["candidate_id"] == "waiter").then_some(())
                })
                .await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(4), all_won).await.is_ok() {
            return sent_at;
        }
        window *= 2;
        assert!(window < Duration::from_secs(4), "the tries are never sent");
    }
}

/// A try of a waiter wins, but the answer does not reach the waiter's node in time. The next try of the same request
/// must recognise that lease as the caller's own, although the caller sent no key. A bug made it wait for the lease to
/// expire.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_without_a_key_gets_the_lease_that_its_earlier_try_won() {
    const ROOMS: usize = 8;
    let (cluster, raft_leader, callers) = three().await;
    let waits_at = (raft_leader + 1) % 3;
    let (leader, waiter) = (&callers[raft_leader], &callers[waits_at]);
    let rooms: Vec<String> = (0..ROOMS).map(|count| format!("won-unheard-{count}")).collect();
    for room in &rooms {
        leader.win(room, "holder", 5).await;
    }
    let held_at = Instant::now();
    let waits =
        futures::future::join_all(rooms.iter().map(|room| {
            waiter.campaign(room, json!({"candidate_id": "waiter", "ttl_seconds": 60, "wait_seconds": 50}))
        }));
    let lose_answers = async {
        let sent_at = send_tries_into_silence(&cluster, held_at, waits_at, (leader, waiter), &rooms).await;
        // The deadline of each try is 5 s. After it, the waiters' node may run again.
        tokio::time::sleep_until((sent_at + Duration::from_millis(5_200)).into()).await;
        cluster.nodes[waits_at].signal(Signal::CONT);
    };
    let (answers, ()) = tokio::join!(waits, lose_answers);
    for (answer, room) in answers.into_iter().zip(&rooms) {
        let held: Held = answer.held(room);
        assert_eq!(settled(|| leader.status(room)).await.body["leader"]["term"], held.term);
        assert_eq!(settled(|| leader.renew(room, &held.token)).await.held(room).term, held.term);
    }
}
