//! `quorate run`: a command runs while its lease is held. The command and all processes that it started are gone before
//! the lease ends.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::client_process::{Tool, command, gone_at, group_is_gone};
use crate::client_proxy::{Fault, Proxy};
use crate::harness::{Cluster, eventually};

/// Commands that are hard to end.
const STUBBORN: [&str; 4] = [
    "sleep 1000",
    "trap '' TERM; while :; do sleep 0.1; done",
    "sleep 1000 & (trap '' TERM; sleep 1000 & sleep 1000) & (sleep 1000; sleep 1000) & wait",
    "trap '' TERM INT HUP; (sh -c 'while :; do sleep 0.05; done' &) ; kill -STOP $$; sleep 1000",
];

/// How much longer the lease lasts than the authority. The promise is that the group is gone before the lease ends, so
/// a busy machine has this much time to end it.
const TO_SPARE: Duration = Duration::from_secs(1);

fn run<'a>(room: &'a str, options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["run", room, "--ttl", "5s", "--output", "json"], options, &["--"], command].concat()
}

async fn is_vacant(cluster: &Cluster, room: &str) -> bool {
    Caller::of(&cluster.nodes[0]).await.status(room).await.body["status"] == "vacant"
}

fn parent_of(pid: Pid) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    let parent = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap();
    Pid::from_raw(parent.parse().unwrap()).unwrap()
}

/// Several runs of each stubborn command, each in a room of its own.
async fn stubborn_runs(cluster: &Cluster, name: &str, each: usize) -> Vec<(Tool, Pid)> {
    let mut tools = Vec::new();
    for count in 0..STUBBORN.len() * each {
        let room = format!("run-{name}-{count}");
        tools.push(Tool::start(&cluster.urls(), &run(&room, &[], &["sh", "-c", STUBBORN[count % STUBBORN.len()]])));
    }
    let mut started = Vec::new();
    for tool in tools {
        let group = tool.group().await;
        started.push((tool, group));
    }
    started
}

#[tokio::test(flavor = "multi_thread")]
async fn with_all_nodes_gone_the_whole_group_is_gone_before_the_lease() {
    let mut cluster = Cluster::single().await;
    let mut runs = stubborn_runs(&cluster, "no-nodes", 5).await;
    cluster.nodes[0].kill();
    let groups: Vec<_> = runs.iter().map(|(_, group)| tokio::spawn(gone_at(*group))).collect();
    for ((tool, _), gone) in runs.iter_mut().zip(groups) {
        let gone = gone.await.unwrap();
        assert_eq!(tool.exit_code().await, 20, "{}", tool.stderr());
        let lease_ends = tool.authority_ends() + TO_SPARE;
        assert!(gone < lease_ends, "{:?} after the lease", gone - lease_ends);
        assert_eq!(tool.seen("uncertain").unwrap()["reason_code"], "authority_deadline");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_group_goes_with_a_parent_that_is_killed() {
    let cluster = Cluster::single().await;
    for (tool, group) in stubborn_runs(&cluster, "killed", 2).await {
        let killed = Instant::now();
        tool.signal(Signal::KILL);
        gone_at(group).await;
        assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_group_goes_in_time_with_a_parent_that_is_stopped() {
    let cluster = Cluster::single().await;
    let runs = stubborn_runs(&cluster, "stopped", 2).await;
    runs.iter().for_each(|(tool, _)| tool.signal(Signal::STOP));
    let groups: Vec<_> = runs.iter().map(|(_, group)| tokio::spawn(gone_at(*group))).collect();
    for ((mut tool, _), gone) in runs.into_iter().zip(groups) {
        let gone = gone.await.unwrap();
        let lease_ends = tool.authority_ends() + TO_SPARE;
        assert!(gone < lease_ends, "{:?} after the lease", gone - lease_ends);
        tool.signal(Signal::CONT);
        assert_eq!(tool.exit_code().await, 20, "{}", tool.stderr());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_group_goes_with_a_guardian_that_is_killed_and_then_the_room_is_given_up() {
    let cluster = Cluster::single().await;
    for (count, (mut tool, group)) in stubborn_runs(&cluster, "guardian", 1).await.into_iter().enumerate() {
        kill_process(parent_of(group), Signal::KILL).unwrap();
        gone_at(group).await;
        assert_eq!(tool.exit_code().await, 70, "{}", tool.stderr());
        assert!(is_vacant(&cluster, &format!("run-guardian-{count}")).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guardian_that_is_stopped_does_not_keep_the_group_alive_after_a_loss() {
    let mut cluster = Cluster::single().await;
    let runs = stubborn_runs(&cluster, "frozen", 1).await;
    runs.iter().for_each(|(_, group)| kill_process(parent_of(*group), Signal::STOP).unwrap());
    cluster.nodes[0].kill();
    for (mut tool, group) in runs {
        let gone = gone_at(group).await;
        let lease_ends = tool.authority_ends() + TO_SPARE;
        assert!(gone <= lease_ends, "late by {:?}", gone - lease_ends);
        assert_eq!(tool.exit_code().await, 20, "{}", tool.stderr());
        assert!(tool.seen("released").is_none(), "a lost lease can't be resigned: {}", tool.stderr());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proven_loss_ends_the_command() {
    let cluster = Cluster::single().await;
    let proxy = Proxy::start(cluster.urls()[0].clone(), |_, _| Fault::Pass).await;
    let args = run("run-proven-loss", &[], &["sh", "-c", STUBBORN[2]]);
    let mut tool = Tool::start(std::slice::from_ref(&proxy.url), &args);
    let group = tool.group().await;
    proxy.set(|_, _| Fault::Answer(404, r#"{"error":"Not current","code":"lease_not_current","request_id":"req_1"}"#));
    gone_at(group).await;
    assert_eq!(tool.exit_code().await, 20, "{}", tool.stderr());
    assert_eq!(tool.seen("lost").unwrap()["reason_code"], "lease_not_current");
    assert!(tool.seen("released").is_none(), "{}", tool.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_is_that_of_the_command() {
    let cluster = Cluster::single().await;
    for (count, (script, code)) in
        [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)].into_iter().enumerate()
    {
        let room = format!("run-exit-code-{count}");
        let mut tool = Tool::start(&cluster.urls(), &run(&room, &[], &["sh", "-c", script]));
        assert_eq!(tool.exit_code().await, code, "{script}: {}", tool.stderr());
        assert!(is_vacant(&cluster, &room).await, "the room is given up before the end");
        assert_eq!(tool.story(), ["leader", "child_started", "child_exited", "released"], "{}", tool.stderr());
    }
    let folder = tempfile::tempdir().unwrap();
    let not_executable = folder.path().join("plain");
    std::fs::write(&not_executable, "text").unwrap();
    for (program, code) in [("/no/such/program", 127), (not_executable.to_str().unwrap(), 126)] {
        let mut tool = Tool::start(&cluster.urls(), &run("run-no-command", &[], &[program]));
        assert_eq!(tool.exit_code().await, code);
        assert!(tool.stderr().contains(program), "{}", tool.stderr());
    }
    let mut tool = Tool::start(&cluster.urls(), &run("run-usage", &["--kill-after", "2s"], &["true"]));
    assert_eq!(tool.exit_code().await, 64, "{}", tool.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_are_passed_on_and_the_room_is_kept_until_the_command_has_ended() {
    let cluster = Cluster::single().await;
    let script = "trap 'echo usr1' USR1; trap 'sleep 1; echo drained; exit 5' TERM; echo ready; \
                  while :; do sleep 0.05; done";
    let args =
        ["run", "run-signals", "--ttl", "10s", "--kill-after", "3s", "--output", "json", "--", "sh", "-c", script];
    let mut tool = Tool::start(&cluster.urls(), &args);
    eventually("the command is ready", || async { tool.stdout().contains("ready").then_some(()) }).await;
    tool.signal(Signal::USR1);
    eventually("a signal is passed on", || async { tool.stdout().contains("usr1").then_some(()) }).await;
    let group = tool.group().await;
    tool.signal(Signal::TERM);
    let mut times_occupied = 0;
    while !group_is_gone(group) {
        if !is_vacant(&cluster, "run-signals").await && !group_is_gone(group) {
            times_occupied += 1;
        }
    }
    assert!(times_occupied > 10, "the room is kept while the command drains");
    assert_eq!(tool.exit_code().await, 5, "{}", tool.stderr());
    assert!(tool.stdout().contains("drained"));
    assert!(is_vacant(&cluster, "run-signals").await);
    assert_eq!(tool.seen("stopping").unwrap()["reason_code"], "signal_15");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ignores_a_signal_is_ended_by_force_when_its_time_is_over() {
    let cluster = Cluster::single().await;
    // The script prints `deaf` once it ignores the signal.
    let deaf = "trap '' TERM; echo deaf; while :; do sleep 0.1; done";
    let args = run("run-stubborn", &["--kill-after", "500ms"], &["sh", "-c", deaf]);
    let mut tool = Tool::start(&cluster.urls(), &args);
    let group = tool.group().await;
    eventually("the command is deaf", || async { tool.stdout().contains("deaf").then_some(()) }).await;
    tool.signal(Signal::TERM);
    let told = Instant::now();
    gone_at(group).await;
    assert!((Duration::from_millis(400)..Duration::from_secs(2)).contains(&told.elapsed()), "{:?}", told.elapsed());
    assert_eq!(tool.exit_code().await, 137);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_gets_its_lease_in_the_environment_and_the_state_file_and_can_read_stdin() {
    let cluster = Cluster::single().await;
    let script = "cat; env | grep ^QUORATE_ | grep -v URL | sort; cat $QUORATE_STATE_FILE; \
                  ls -ld $(dirname $QUORATE_STATE_FILE); sleep 2.2; cat $QUORATE_STATE_FILE";
    let mut command =
        command(&cluster.urls(), &run("run-environment", &["--candidate", "worker-a"], &["sh", "-c", script]));
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"from stdin\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(lines[0], "from stdin");
    let value = |name: &str| {
        let start = format!("QUORATE_{name}=");
        lines.iter().find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("{name} in {text}"))
    };
    assert_eq!(value("ROOM"), "run-environment");
    assert_eq!(value("CANDIDATE"), "worker-a");
    assert!(value("EXPIRES_AT").ends_with('Z'));
    assert!(!text.contains("TOKEN"), "the command must not get the token: {text}");
    let states: Vec<Value> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let [first, second] = states.as_slice() else { panic!("{text}") };
    assert_eq!(first["term"].to_string(), value("TERM"));
    assert_eq!((&first["renewals"], &second["renewals"]), (&json!(0), &json!(1)), "{text}");
    assert!(first["authority_ends_continuous_ms"].as_u64() < second["authority_ends_continuous_ms"].as_u64());
    assert!(text.contains("\ndrwx------ "), "{text}");
    assert!(!std::path::Path::new(value("STATE_FILE")).exists(), "the state file is removed at the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_does_not_get_the_room_in_time_has_an_exit_code_for_the_reason() {
    let cluster = Cluster::single().await;
    Caller::of(&cluster.nodes[0]).await.win("run-taken", "somebody-else", 60).await;
    for (options, code) in [(vec!["--no-wait"], 10), (vec!["--wait", "300ms"], 11)] {
        let mut tool = Tool::start(&cluster.urls(), &run("run-taken", &options, &["echo", "never"]));
        assert_eq!(tool.exit_code().await, code, "{}", tool.stderr());
        assert_eq!(tool.stdout(), "");
        assert_eq!(tool.seen("waiting").unwrap()["leader"]["candidate_id"], "somebody-else");
    }
    let mut tool = Tool::start(&cluster.urls(), &run("run-taken", &[], &["echo", "never"]));
    tool.event("waiting").await;
    tool.signal(Signal::TERM);
    assert_eq!(tool.exit_code().await, 143, "waiting can be interrupted");
    let mut tool =
        Tool::start(&["http://127.0.0.1:1".into()], &run("run-taken", &["--no-wait", "--timeout", "1s"], &["echo"]));
    assert_eq!(tool.exit_code().await, 69, "{}", tool.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_a_command_leaves_in_its_group_are_ended_before_the_run_ends() {
    let cluster = Cluster::single().await;
    let script = "(trap '' TERM; while :; do sleep 0.05; done) & echo started; exit 3";
    let mut tool =
        Tool::start(&cluster.urls(), &run("run-left-behind", &["--kill-after", "500ms"], &["sh", "-c", script]));
    let group = tool.group().await;
    assert_eq!(tool.exit_code().await, 3, "{}", tool.stderr());
    assert!(group_is_gone(group));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_wait_for_each_other_take_turns_without_delay() {
    let cluster = Cluster::single().await;
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let script = format!("echo begin >> {0}; sleep 0.02; echo end >> {0}", journal.display());
    let started = Instant::now();
    let mut tools: Vec<_> =
        (0..8).map(|_| Tool::start(&cluster.urls(), &run("run-in-turn", &[], &["sh", "-c", &script]))).collect();
    for tool in &mut tools {
        assert_eq!(tool.exit_code().await, 0, "{}", tool.stderr());
    }
    // Each of the 8 turns starts three processes, on two cores that other tests use as well.
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    let journal = std::fs::read_to_string(journal).unwrap();
    assert_eq!(journal, "begin\nend\n".repeat(8), "never two at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_restart_on_loss_the_command_runs_again_under_a_higher_term() {
    let mut cluster = Cluster::single().await;
    let args = run("run-restart", &["--restart", "on-loss"], &["sh", "-c", "echo term $QUORATE_TERM; sleep 1000"]);
    let mut tool = Tool::start(&cluster.urls(), &args);
    tool.group().await;
    cluster.nodes[0].kill();
    tool.event("uncertain").await;
    cluster.nodes[0].start_again();
    let terms = eventually("a second term", || async {
        let terms: Vec<u64> =
            tool.stdout().lines().filter_map(|line| line.strip_prefix("term ")?.parse().ok()).collect();
        (terms.len() == 2).then_some(terms)
    })
    .await;
    assert!(terms[1] > terms[0], "{terms:?}");
    tool.signal(Signal::TERM);
    assert_eq!(tool.exit_code().await, 143);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_file_is_only_for_its_owner() {
    let cluster = Cluster::single().await;
    let tool =
        Tool::start(&cluster.urls(), &run("run-private", &[], &["sh", "-c", "echo $QUORATE_STATE_FILE; sleep 1000"]));
    let path = eventually("a path", || async { Some(tool.stdout()).filter(|text| !text.is_empty()) }).await;
    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
