//! What a caller is told when nobody can know yet what became of its request.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::caller::{Answer, Caller, Held};
use crate::harness::{Cluster, eventually};

/// Three nodes, the place of the raft leader among them, and a caller of each.
async fn three() -> (Cluster, usize, Vec<Caller>) {
    let cluster = Cluster::three().await;
    let leads = cluster.raft_leader().await;
    let callers = Caller::of_each(&cluster).await;
    (cluster, leads, callers)
}

/// Stops the two others, or lets them go on. A raft leader that is left alone can still propose, and commit nothing.
fn signal_others(cluster: &Cluster, leads: usize, signal: Signal) {
    cluster.nodes.iter().enumerate().filter(|(place, _)| *place != leads).for_each(|(_, node)| node.signal(signal));
}

/// A raft leader without its quorum has proposed what changes something, and doesn't know what becomes of it; of what
/// changes nothing it knows that nothing was done.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_proposed_and_not_committed_has_an_unknown_outcome_and_the_key_settles_it() {
    const KEY: &str = "a-key-that-settles-it-01";
    let (cluster, leads, callers) = three().await;
    let leader = &callers[leads];
    let renewing = leader.win("unknown-renewal", "holder", 60).await;
    let resigning = leader.win("unknown-resignation", "holder", 60).await;

    signal_others(&cluster, leads, Signal::STOP);
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
    signal_others(&cluster, leads, Signal::CONT);
    for (name, answer) in [("campaign", &won), ("renewal", &renewed), ("resignation", &resigned)] {
        answer.is_error(503, "outcome_unknown").has_fields(503, "code details error request_id");
        assert!(answer.body["details"].as_str().unwrap().contains("Idempotency-Key"), "{name}: {}", answer.text);
        assert_eq!(answer.header("retry-after"), "", "{name}: there is no need to wait");
    }
    for answer in [&lost, &forged, &seen] {
        answer.is_error(503, "unavailable");
    }
    assert_eq!((seen_here.status, &seen_here.body["leader"]["term"]), (200, &json!(renewing.term)));
    assert!((4_500..9_000).contains(&took.as_millis()), "5 s for what was asked, and not much more: {took:?}");

    cluster.ready().await;
    let mut terms = Vec::new();
    for caller in &callers {
        let held =
            settled(|| caller.campaign_with_key("unknown-campaign", "worker-a", KEY)).await.held("unknown-campaign");
        let seen = settled(|| caller.status("unknown-campaign")).await;
        assert_eq!(seen.body["leader"]["term"], held.term);
        terms.push((held.term, held.token));
    }
    assert!(terms.iter().all(|term| *term == terms[0]), "one campaign, one lease: {terms:?}");
    let renewed = settled(|| leader.renew("unknown-renewal", &renewing.token)).await;
    assert_eq!(renewed.held("unknown-renewal").term, renewing.term);
    let resigned = settled(|| leader.resign("unknown-resignation", &resigning.token)).await;
    assert!(resigned.status == 200 || resigned.body["code"] == "lease_not_current", "{}", resigned.text);
    let left = settled(|| leader.status("unknown-resignation")).await;
    assert_eq!(left.body["status"], "vacant", "it was done once, by the first or by the second");
    cluster.converged().await;
}

/// The first answer that isn't one of a cluster which is about to elect a raft leader.
async fn settled<F: Future<Output = Answer>>(ask: impl Fn() -> F) -> Answer {
    eventually("an answer", || async {
        let answer = ask().await;
        (answer.status != 503).then_some(answer)
    })
    .await
}

/// When a wait ends while a try is under way, that try decides: a second one beside it could be told that somebody else
/// leads, namely the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_try_that_is_under_way_when_its_wait_ends_is_the_one_that_is_answered() {
    const ROOMS: usize = 8;
    let (cluster, leads, callers) = three().await;
    let leader = &callers[leads];
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
        // Shortly before the leases end; the waiters then try by themselves, half a second later.
        eventually("the leases are about to end", || async {
            let seen = leader.local_status("last-try-room-0").await;
            (seen.body["retry_after_ms"].as_u64()? < 800).then_some(())
        })
        .await;
        signal_others(&cluster, leads, Signal::STOP);
        // Until every wait is over, and every try is still under way: they have five seconds.
        tokio::time::sleep_until((asked_at + Duration::from_millis(7_500)).into()).await;
        signal_others(&cluster, leads, Signal::CONT);
    };
    let (answers, ()) = tokio::join!(waits, pause);
    for (answer, room) in answers {
        let held: Held = answer.held(&room);
        assert_eq!(answer.body["leader"]["candidate_id"], "waiter");
        let renewed = settled(|| leader.renew(&room, &held.token)).await;
        assert_eq!(renewed.held(&room).term, held.term, "who was told that it leads does lead");
    }
}

/// The others of a raft follower.
fn others(place: usize) -> impl Iterator<Item = usize> {
    (0..3).filter(move |other| *other != place)
}

/// Returns shortly before the lease ends, as the node knows it.
async fn about_to_end(caller: &Caller, room: &str) {
    eventually("the lease is about to end", || async {
        let seen = caller.local_status(room).await;
        (seen.body["retry_after_ms"].as_u64()? < 500).then_some(())
    })
    .await;
}

/// A waiter's try reached a raft leader that then never answered; the tries after it reached nobody. What the last one
/// says of itself, that it changed nothing, isn't true of the request.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_with_a_try_that_nobody_knows_the_outcome_of_does_not_end_as_unavailable() {
    const ROOM: &str = "unknown-while-waiting";
    let (mut cluster, leads, callers) = three().await;
    let waits_at = (leads + 1) % 3;
    let waiter = callers[waits_at].clone();
    callers[leads].win(ROOM, "holder", 5).await;
    let held_at = Instant::now();
    let waiting = tokio::spawn(async move {
        let body = json!({"candidate_id": "waiter", "wait_seconds": 12});
        waiter.campaign(ROOM, body).await
    });
    about_to_end(&callers[waits_at], ROOM).await;
    others(waits_at).for_each(|place| cluster.nodes[place].signal(Signal::STOP));
    // By then the waiter has tried by itself, half a second after the end of the lease.
    tokio::time::sleep_until((held_at + Duration::from_millis(8_000)).into()).await;
    others(waits_at).for_each(|place| cluster.nodes[place].kill());
    waiting.await.unwrap().is_error(503, "outcome_unknown");
}

/// A waiter's try won, and its node didn't hear of it in time. The next try of the same request must know that lease for
/// its caller's own, although the caller has brought no key; it once waited for its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_without_a_key_is_told_of_what_an_earlier_try_has_won() {
    const ROOMS: usize = 8;
    let (cluster, leads, callers) = three().await;
    let waits_at = (leads + 1) % 3;
    let (leader, waiter) = (&callers[leads], &callers[waits_at]);
    let rooms: Vec<String> = (0..ROOMS).map(|count| format!("won-unheard-{count}")).collect();
    for room in &rooms {
        leader.win(room, "holder", 5).await;
    }
    let held_at = Instant::now();
    let waits =
        futures::future::join_all(rooms.iter().map(|room| {
            waiter.campaign(room, json!({"candidate_id": "waiter", "ttl_seconds": 60, "wait_seconds": 50}))
        }));
    let signal = |places: &[usize], signal| places.iter().for_each(|place| cluster.nodes[*place].signal(signal));
    let others: Vec<usize> = others(waits_at).collect();
    let faults = async {
        // The waiters' node doesn't hear of the end of the leases. By the time that it would ask by itself, nobody reads
        // what it sends.
        about_to_end(waiter, &rooms[0]).await;
        signal(&[waits_at], Signal::STOP);
        for room in &rooms {
            eventually("a vacant room", || async {
                (leader.status(room).await.body["status"] == "vacant").then_some(())
            })
            .await;
        }
        tokio::time::sleep_until((held_at + Duration::from_millis(6_000)).into()).await;
        // The waiters' node runs only while nobody reads what it sends, until the tries are on their way.
        let mut window = Duration::from_millis(300);
        let sent_at = loop {
            signal(&others, Signal::STOP);
            signal(&[waits_at], Signal::CONT);
            tokio::time::sleep(window).await;
            signal(&[waits_at], Signal::STOP);
            let sent_at = Instant::now();
            signal(&others, Signal::CONT);
            let won = async {
                for room in &rooms {
                    eventually("the room is won", || async {
                        (leader.status(room).await.body["leader"]["candidate_id"] == "waiter").then_some(())
                    })
                    .await;
                }
            };
            if tokio::time::timeout(Duration::from_secs(4), won).await.is_ok() {
                break sent_at;
            }
            window *= 2;
            assert!(window < Duration::from_secs(4), "the tries are never on their way");
        };
        // Until each try has had its five seconds.
        tokio::time::sleep_until((sent_at + Duration::from_millis(5_200)).into()).await;
        signal(&[waits_at], Signal::CONT);
    };
    let (answers, ()) = tokio::join!(waits, faults);
    for (answer, room) in answers.into_iter().zip(&rooms) {
        let held: Held = answer.held(room);
        assert_eq!(settled(|| leader.status(room)).await.body["leader"]["term"], held.term);
        assert_eq!(settled(|| leader.renew(room, &held.token)).await.held(room).term, held.term);
    }
}
