//! `quorate hold`: its events, its sidecar, and what it survives.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::client_probe::Probe;
use crate::client_process::{Tool, boot_time};
use crate::harness::{Cluster, Node, eventually, http};

const TTL: Duration = Duration::from_secs(5);

fn hold<'a>(room: &'a str, candidate: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["hold", room, "--candidate", candidate, "--ttl", "5s"], more].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_prints_its_events_and_hands_over_when_it_is_told_to_end() {
    let cluster = Cluster::three().await;
    let mut first = Tool::start(&cluster.urls(), &hold("hold-story", "worker-a", &["--metadata", "http://a"]));
    let leader = first.event("leader").await;
    assert_eq!((&leader["schema_version"], &leader["sequence"]), (&json!(1), &json!(1)));
    assert_eq!((&leader["kind"], &leader["name"]), (&json!("election"), &json!("hold-story")));
    assert_eq!((&leader["candidate_id"], &leader["server"]), (&json!("worker-a"), &json!(cluster.urls()[0])));
    assert!(leader["term"].as_u64().unwrap() > 0 && leader["expires_at"].as_str().unwrap().ends_with('Z'));
    let remaining = leader["authority_remaining_ms"].as_u64().unwrap();
    assert!((3_000..=4_000).contains(&remaining), "80 % of the lease: {leader}");
    let observed = Duration::from_millis(leader["authority_observed_continuous_ms"].as_u64().unwrap());
    assert!(boot_time().saturating_sub(observed) < Duration::from_secs(5), "{leader}");

    let mut second = Tool::start(&cluster.urls(), &hold("hold-story", "worker-b", &[]));
    let waiting = second.event("waiting").await;
    assert_eq!(waiting["leader"]["candidate_id"], "worker-a");
    assert!(waiting["retry_after_ms"].as_u64().unwrap() <= 5_100, "{waiting}");
    first.event("renewed").await;

    let told = Instant::now();
    first.signal(Signal::TERM);
    assert!(second.event("leader").await["term"].as_u64() > leader["term"].as_u64());
    assert!(told.elapsed() < Duration::from_secs(1), "{:?}", told.elapsed());
    assert_eq!(first.exit_code().await, 143);
    assert_eq!(first.story(), ["leader", "renewed", "released"]);
    assert_eq!(first.seen("released").unwrap()["term"], leader["term"]);
    let sequence: Vec<_> = first.events().iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequence, (1..=sequence.len() as u64).collect::<Vec<_>>());
    second.signal(Signal::INT);
    assert_eq!(second.exit_code().await, 130);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_candidate_leads_after_the_lease_of_a_killed_holder_and_not_before() {
    let cluster = Cluster::single().await;
    let first = Tool::start(&cluster.urls(), &hold("hold-killed", "worker-a", &[]));
    first.event("leader").await;
    let second = Tool::start(&cluster.urls(), &hold("hold-killed", "worker-b", &[]));
    second.event("waiting").await;
    first.event("renewed").await;
    first.signal(Signal::KILL);
    let killed = Instant::now();
    let authority_ended = first.authority_ends();
    second.event("leader").await;
    assert!(killed.elapsed() < TTL + Duration::from_secs(1), "{:?}", killed.elapsed());
    assert!(boot_time() > authority_ended, "the first one could still have acted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_keeps_its_term_through_kill_9_of_each_node_in_turn() {
    let mut cluster = Cluster::three().await;
    let probe = Probe::start(cluster.urls());
    let mut tool = Tool::start(&cluster.urls(), &hold("hold-rolling", "worker-a", &[]));
    let mut term = tool.event("leader").await["term"].clone();
    let (mut survived, mut last_server) = (0, 0);
    for round in 0..6 {
        // The loss of the node that the hold talks to matters most, so that node is killed in every second round.
        let server = tool.events().last().unwrap()["server"].clone();
        last_server = cluster.urls().iter().position(|url| json!(url) == server).unwrap_or(last_server);
        let place = if round % 2 == 0 { last_server } else { cluster.raft_leader().await };
        cluster.nodes[place].kill();
        tokio::time::sleep(Duration::from_secs(3)).await;
        cluster.nodes[place].start_again();
        cluster.ready().await;
        let excuse = probe.excuse();
        if tool.is_running() {
            survived += 1;
            let last = tool.events().pop().unwrap();
            assert_eq!(last["term"], term, "{last}");
        } else {
            let gap = excuse.expect("the term was lost although the cluster was working");
            assert_eq!(tool.exit_code().await, 20);
            eprintln!("excused: the cluster committed nothing for {gap:?}");
            tool = Tool::start(&cluster.urls(), &hold("hold-rolling", "worker-a", &[]));
            term = tool.event("leader").await["term"].clone();
        }
    }
    assert!(survived >= 3, "only {survived} of 6");
    assert!(survived < 6 || tool.seen("failover").is_some(), "{}", tool.stdout());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_all_nodes_down_a_hold_reports_its_loss_before_the_lease_ends() {
    let mut cluster = Cluster::three().await;
    let mut tools: Vec<_> = (0..5)
        .map(|count| {
            let room = format!("hold-down-{count}");
            Tool::start(&cluster.urls(), &hold(&room, "worker-a", &[]))
        })
        .collect();
    for tool in &tools {
        tool.event("leader").await;
    }
    cluster.nodes.iter_mut().for_each(Node::kill);
    for tool in &mut tools {
        assert_eq!(tool.exit_code().await, 20);
        let end = tool.seen("uncertain").unwrap();
        assert_eq!(end["reason_code"], "authority_deadline");
        assert_eq!(end["authority_remaining_ms"], 0);
        let told = Duration::from_millis(end["authority_observed_continuous_ms"].as_u64().unwrap());
        let lease_ends = tool.authority_ends() + TTL / 5;
        assert!(told < lease_ends - Duration::from_millis(500), "told {told:?}, lease ends {lease_ends:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sidecar_says_who_leads_and_never_gives_an_outdated_answer() {
    let mut cluster = Cluster::single().await;
    Caller::of(&cluster.nodes[0]).await.win("hold-sidecar", "somebody-else", 5).await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let tool = Tool::start(&cluster.urls(), &hold("hold-sidecar", "worker-a", &["--listen", &listen]));
    let ask = async |path: &str| {
        let answer = http().get(format!("http://{listen}{path}")).send().await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.unwrap().trim().to_owned()))
    };
    let said = |status: u16, text: &str| Some((status, text.to_owned()));
    eventually("the other's name", || async { (ask("/").await == said(200, "somebody-else")).then_some(()) }).await;
    assert_eq!(ask("/is-leader").await, said(409, "false"));
    tool.event("leader").await;
    eventually("the own name", || async { (ask("/").await == said(200, "worker-a")).then_some(()) }).await;
    assert_eq!(ask("/is-leader").await, said(200, "true"));
    let status: Value = serde_json::from_str(&ask("/status").await.unwrap().1).unwrap();
    assert_eq!((&status["is_leader"], &status["status"]), (&json!(true), &json!("leader")), "{status}");
    assert_eq!(status["term"], tool.seen("leader").unwrap()["term"]);
    assert!((1..=4_000).contains(&status["remaining_ms"].as_u64().unwrap()), "{status}");

    // The process is stopped until its authority is over. When it continues, it must not say that it still leads.
    cluster.nodes[0].kill();
    tool.signal(Signal::STOP);
    let ends = tool.authority_ends();
    tokio::time::sleep(ends.saturating_sub(boot_time()) + Duration::from_millis(100)).await;
    tool.signal(Signal::CONT);
    let answer = ask("/is-leader").await;
    assert_ne!(answer, said(200, "true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_holds_with_one_name_are_two_candidates_and_the_second_says_so() {
    let cluster = Cluster::single().await;
    let first = Tool::start(&cluster.urls(), &hold("hold-same-name", "worker-a", &["--output", "text"]));
    eventually("leads", || async { first.stdout().contains("worker-a leads, term ").then_some(()) }).await;
    let second = Tool::start(&cluster.urls(), &hold("hold-same-name", "worker-a", &["--output", "text"]));
    let text = eventually("a line", || async { Some(second.stdout()).filter(|text| !text.is_empty()) }).await;
    assert_eq!(text, "hold-same-name: waiting; worker-a leads already, by another campaign under the same name");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_reader_a_hold_ends_and_gives_the_room_up() {
    let cluster = Cluster::single().await;
    let mut command = crate::client_process::command(&cluster.urls(), &hold("hold-no-reader", "worker-a", &[]));
    let mut child = command.spawn().unwrap();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    assert!(line.contains("\"leader\""), "{line}");
    drop(reader);
    let ended = Instant::now();
    let status = eventually("its end", || std::future::ready(child.try_wait().unwrap())).await;
    assert!(status.success() && ended.elapsed() < TTL, "{status} after {:?}", ended.elapsed());
    let room = Caller::of(&cluster.nodes[0]).await.status("hold-no-reader").await;
    assert_eq!(room.body["status"], "vacant");
}
