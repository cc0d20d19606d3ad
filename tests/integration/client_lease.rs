//! The client library against real nodes: who leads, for how long, and what ends a leadership.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use quorate::client::{
    Attempt, Client, ClientError, Election, HolderClock, HolderInstant, Leadership, LeadershipState, LossReason,
    SystemHolderClock, Waiting,
};
use rustix::process::Signal;

use crate::caller::Caller;
use crate::client_probe::Probe;
use crate::client_proxy::{Fault, Proxy};
use crate::harness::{Cluster, Node, eventually};

const TTL: Duration = Duration::from_secs(5);

fn election(urls: impl IntoIterator<Item = String>, room: &str) -> Election {
    Client::builder().urls(urls).build().unwrap().election(room).unwrap()
}

async fn lead(election: &Election, candidate: &str) -> Leadership {
    let campaign = election.campaign(candidate).unwrap().ttl(TTL).unwrap();
    match campaign.try_once().await.unwrap() {
        Attempt::Won(leadership) => leadership,
        Attempt::Follower(follower) => panic!("{follower:?}"),
    }
}

async fn stays_held_for(leadership: &Leadership, duration: Duration) {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        assert!(leadership.is_held(), "{:?}", *leadership.state().borrow());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn renewals(leadership: &Leadership) -> u64 {
    match &*leadership.state().borrow() {
        LeadershipState::Held(standing) => standing.renewals,
        LeadershipState::Lost(reason) => panic!("{reason}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leadership_is_renewed_until_it_resigns_and_then_a_waiting_candidate_leads_at_once() {
    let cluster = Cluster::single().await;
    let election = election(cluster.urls(), "lib-handover");
    let first = lead(&election, "worker-a").await;
    let (term, token) = (first.term(), first.token());
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let waiting = election.campaign("worker-b").unwrap().ttl(TTL).unwrap().on_waiting(move |waiting| {
        let Waiting::OtherLeads(follower) = waiting else { panic!("{waiting:?}") };
        send.send(follower.leader.clone().unwrap().candidate_id.to_string()).unwrap();
    });
    let waiting = tokio::spawn(waiting.wait());
    assert_eq!(received.recv().await.unwrap(), "worker-a");
    // This is longer than the lease, so only renewals can keep it.
    stays_held_for(&first, TTL + Duration::from_secs(1)).await;
    assert!(renewals(&first) >= 3);
    assert!((Duration::from_secs(1)..=TTL * 8 / 10).contains(&first.remaining()), "{:?}", first.remaining());

    assert!(!token.is_cancelled());
    first.resign().await.unwrap();
    let resigned_at = Instant::now();
    assert!(token.is_cancelled());
    let second = waiting.await.unwrap().unwrap();
    assert!(resigned_at.elapsed() < Duration::from_secs(1), "{:?}", resigned_at.elapsed());
    assert!(second.term() > term);
    // The lease of a waiting candidate does not count from before its wait.
    assert!(second.remaining() > TTL / 2, "{:?}", second.remaining());
    assert_eq!(election.status().await.unwrap().leader.unwrap().candidate_id.as_str(), "worker-b");

    let third = election.campaign("worker-c").unwrap().wait_timeout(Duration::from_millis(1_500)).await.unwrap();
    assert!(matches!(third, Attempt::Follower(follower) if follower.leader.clone().unwrap().term == second.term()));
    drop(second);
    eventually("a dropped leadership resigns", || async {
        election.status().await.unwrap().leader.is_none().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_runs_while_the_leadership_lasts_and_is_dropped_when_it_is_lost() {
    let mut cluster = Cluster::single().await;
    let election = election(cluster.urls(), "lib-work-runs");
    let output = lead(&election, "worker-a").await.run(async { 7 }).await;
    assert_eq!(output, Ok(7));
    assert!(election.status().await.unwrap().leader.is_none(), "the leadership resigns when the work is done");

    let leadership = lead(&election, "worker-a").await;
    let started = Instant::now();
    cluster.nodes[0].kill();
    let output = leadership.run(std::future::pending::<()>()).await;
    assert_eq!(output, Err(LossReason::Uncertain));
    assert!(started.elapsed() <= TTL, "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leadership_survives_kill_9_of_each_node_in_turn() {
    let mut cluster = Cluster::three().await;
    let election = election(cluster.urls(), "lib-rolling");
    let probe = Probe::start(cluster.urls());
    let mut leadership = lead(&election, "worker-a").await;
    let mut survived = 0;
    for place in [0, 1, 2, 0, 1, 2] {
        cluster.nodes[place].kill();
        tokio::time::sleep(Duration::from_secs(3)).await;
        cluster.nodes[place].start_again();
        cluster.ready().await;
        let excuse = probe.excuse();
        if leadership.is_held() {
            survived += 1;
            let status = election.status().await.unwrap();
            assert_eq!(status.leader.unwrap().term, leadership.term());
        } else {
            let gap = excuse.expect("the leadership was lost although the cluster was working");
            eprintln!("excused: the cluster committed nothing for {gap:?}");
            leadership = election.campaign("worker-a").unwrap().ttl(TTL).unwrap().wait().await.unwrap();
        }
    }
    assert!(survived >= 3, "only {survived} of 6");
}

#[tokio::test(flavor = "multi_thread")]
async fn authority_ends_in_time_when_all_nodes_are_gone() {
    let mut cluster = Cluster::three().await;
    let election = election(cluster.urls(), "lib-all-gone");
    for signal in [Signal::STOP, Signal::KILL] {
        let leadership = lead(&election, "worker-a").await;
        let renewed = eventually("a renewal", || async { (renewals(&leadership) > 0).then(Instant::now) }).await;
        cluster.nodes.iter().for_each(|node| node.signal(signal));
        let reason = leadership.lost().await;
        let lost_after = renewed.elapsed();
        assert_eq!(reason, LossReason::Uncertain);
        assert!(leadership.token().is_cancelled() && !leadership.is_held());
        // A busy machine may wake the keeper and this test late. The last fifth of the lease leaves time for that.
        assert!(lost_after <= TTL - Duration::from_millis(200), "{lost_after:?}");
        assert!(lost_after >= TTL / 2, "{lost_after:?}");
        if signal == Signal::STOP {
            cluster.nodes.iter().for_each(|node| node.signal(Signal::CONT));
            cluster.ready().await;
            assert!(!leadership.is_held(), "a lost leadership stays lost");
            drop(leadership);
            eventually("the room is free again", || async {
                election.status().await.ok()?.leader.is_none().then_some(())
            })
            .await;
        }
    }
    cluster.nodes.iter_mut().for_each(Node::kill);
    let started = Instant::now();
    let client = Client::builder().urls(cluster.urls()).request_deadline(Duration::from_secs(1)).build().unwrap();
    let error = client.election("lib-all-gone").unwrap().status().await.unwrap_err();
    assert!(matches!(error, ClientError::Unavailable(_)), "{error}");
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hangs_does_not_end_a_leadership() {
    let cluster = Cluster::three().await;
    let hanging = Proxy::start(cluster.urls()[0].clone(), |_, _| Fault::Delay(Duration::from_secs(60))).await;
    let urls = [hanging.url.clone(), cluster.urls()[1].clone(), cluster.urls()[2].clone()];
    let election = election(urls, "lib-hanging");
    let leadership = lead(&election, "worker-a").await;
    stays_held_for(&leadership, TTL).await;
    assert_eq!(hanging.requests(), 1, "after that, the node that answered is asked first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_is_lost_is_repeated_without_harm() {
    let cluster = Cluster::single().await;
    let proxy =
        Proxy::start(
            cluster.urls()[0].clone(),
            |_, count| {
                if count.is_multiple_of(2) { Fault::CutAnswer } else { Fault::Pass }
            },
        )
        .await;
    let election = election([proxy.url.clone()], "lib-cut-answers");
    // The first answer is cut off. The second try finds the lease by the idempotency key.
    let leadership = lead(&election, "worker-a").await;
    assert_eq!(proxy.requests(), 2);
    stays_held_for(&leadership, TTL * 2).await;
    let room = Caller::of(&cluster.nodes[0]).await.status("lib-cut-answers").await;
    assert_eq!(room.body["leader"]["term"], leadership.term().0);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_and_answers_that_are_not_from_quorate_do_not_end_a_leadership() {
    let cluster = Cluster::single().await;
    let proxy = Proxy::start(cluster.urls()[0].clone(), |_, _| Fault::Pass).await;
    let election = election([proxy.url.clone()], "lib-strange");
    let leadership = lead(&election, "worker-a").await;
    for (status, body) in [
        (503, r#"{"error":"No quorum","code":"unavailable","retry_after_ms":1000,"request_id":"req_1"}"#),
        (503, r#"{"error":"Unknown","code":"outcome_unknown","request_id":"req_1"}"#),
        (500, r#"{"error":"A bug","code":"internal_error","request_id":"req_1"}"#),
        (502, "<h1>Bad gateway</h1>"),
        (404, "<h1>Not found</h1>"),
        (200, "<h1>Welcome to this hotel</h1>"),
        (429, r#"{"error":"Slow","code":"rate_limited","retry_after_ms":300,"request_id":"req_1"}"#),
    ] {
        let before = renewals(&leadership);
        // Each renewal fails twice.
        proxy.set(move |_, count| if count % 3 < 2 { Fault::Answer(status, body) } else { Fault::Pass });
        eventually("another renewal", || async { (renewals(&leadership) > before).then_some(()) }).await;
        assert!(leadership.is_held());
    }
    proxy.set(|_, _| Fault::Answer(404, r#"{"error":"Not current","code":"lease_not_current","request_id":"req_1"}"#));
    let started = Instant::now();
    assert_eq!(leadership.lost().await, LossReason::NotCurrent);
    assert!(started.elapsed() < TTL / 2, "a node's proof ends the leadership at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_that_rejects_renewals_is_left_and_only_all_nodes_end_a_leadership() {
    let cluster = Cluster::single().await;
    let reject =
        |_: &str, _| Fault::Answer(401, r#"{"error":"No","code":"authentication_failed","request_id":"req_1"}"#);
    let start = || Proxy::start(cluster.urls()[0].clone(), |_, _| Fault::Pass);
    let nodes = [start().await, start().await];
    let election = election(nodes.each_ref().map(|node| node.url.clone()), "lib-rejected");
    let leadership = lead(&election, "worker-a").await;
    nodes[0].set(reject);
    stays_held_for(&leadership, TTL).await;
    nodes[1].set(reject);
    assert_eq!(leadership.lost().await, LossReason::Rejected { code: "authentication_failed".into() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_resigned_elsewhere_is_a_proven_loss() {
    let cluster = Cluster::single().await;
    let election = election(cluster.urls(), "lib-elsewhere");
    let leadership = lead(&election, "worker-a").await;
    let ended = election.resign(leadership.leader_token().clone()).await.unwrap().unwrap();
    assert_eq!(ended.previous_term, leadership.term());
    assert_eq!(leadership.lost().await, LossReason::NotCurrent);
    assert!(election.resign(leadership.leader_token().clone()).await.unwrap().is_none(), "the lease had ended already");
    assert!(leadership.resign().await.is_ok(), "a lost lease needs no resignation");
}

/// The kernel's clocks. A test can add time to the clock that also counts while the machine sleeps.
#[derive(Default)]
struct SleepyClock(Mutex<Duration>);

impl HolderClock for SleepyClock {
    fn now(&self) -> HolderInstant {
        let now = SystemHolderClock.now();
        HolderInstant { boot: now.boot + *self.0.lock().unwrap(), ..now }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_slept_wakes_up_without_authority() {
    let cluster = Cluster::single().await;
    let clock = Arc::new(SleepyClock::default());
    let client = Client::builder().urls(cluster.urls()).clock(clock.clone()).build().unwrap();
    let leadership = lead(&client.election("lib-sleepy").unwrap(), "worker-a").await;
    *clock.0.lock().unwrap() += Duration::from_secs(3);
    assert!(leadership.remaining() < Duration::from_secs(1), "{:?}", leadership.remaining());
    eventually("the overdue renewal", || async { (renewals(&leadership) > 0).then_some(()) }).await;
    assert!(leadership.is_held());
    let token = leadership.token();
    *clock.0.lock().unwrap() += Duration::from_secs(4);
    assert!(!leadership.is_held(), "authority ends at once, without a request");
    assert!(token.is_cancelled());
    assert_eq!(leadership.lost().await, LossReason::Uncertain);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_at_another_node_when_its_node_is_killed() {
    let mut cluster = Cluster::three().await;
    let caller = Caller::of(&cluster.nodes[1]).await;
    let election = election(cluster.urls(), "lib-watch-1");
    let mut watch = Box::pin(election.watch());
    let first = watch.next().await.unwrap().unwrap();
    assert!(first.leader.is_none());
    let won = caller.win("lib-watch-1", "worker-a", 60).await;
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(event.leader.unwrap().term.0, won.term);

    cluster.nodes[0].kill();
    let event = tokio::time::timeout(Duration::from_secs(10), watch.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(event.leader.unwrap().term.0, won.term, "the new connection begins with a fresh read");
    eventually("a resignation", || async {
        (caller.resign("lib-watch-1", &won.token).await.status == 200).then_some(())
    })
    .await;
    let vacant = async { while watch.next().await.unwrap().unwrap().leader.is_some() {} };
    tokio::time::timeout(Duration::from_secs(10), vacant).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_a_retry_cannot_mend_is_returned_at_once() {
    let cluster = Cluster::single_with(&["--no-elections"]).await;
    let election = election(cluster.urls(), "lib-forbidden");
    for error in [
        election.status().await.unwrap_err(),
        election.campaign("worker-a").unwrap().wait().await.err().unwrap(),
        Box::pin(election.watch()).next().await.unwrap().unwrap_err(),
    ] {
        assert_eq!(error.code(), Some("forbidden"), "{error}");
        assert!(!error.may_retry());
    }
}
