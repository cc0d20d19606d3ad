//! The commands that do one thing, `create`, `status`, `watch`, `campaign` and `resign`, and their exit codes.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::client_process::{Tool, command};
use crate::harness::{Cluster, eventually};

async fn run(urls: &[String], args: &[&str]) -> Output {
    let mut command = command(urls, args);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_created_led_shown_and_given_up() {
    let cluster = Cluster::single().await;
    let urls = cluster.urls();
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    let token_path = token_file.to_str().unwrap();

    let created = run(&urls, &["create"]).await;
    let room = text(&created.stdout).to_owned();
    assert_eq!(room.len(), 32, "{created:?}");
    assert!(json_of(&run(&urls, &["create", "--output", "json"]).await)["status_path"].is_string());

    let campaign = ["campaign", &room, "--candidate", "worker-a", "--ttl", "1m", "--token-file", token_path];
    let won = run(&urls, &campaign).await;
    assert_eq!(won.status.code(), Some(0), "{won:?}");
    let answer = json_of(&won);
    assert_eq!((&answer["status"], &answer["leader"]["candidate_id"]), (&json!("leader"), &json!("worker-a")));
    assert!(answer.get("leader_token").is_none(), "{answer}");
    let token = std::fs::read_to_string(&token_file).unwrap();
    assert_eq!(token.trim().len(), 43);
    assert_eq!(token_file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let status = run(&urls, &["status", &room]).await;
    let line = text(&status.stdout).to_owned();
    assert!(line.starts_with(&format!("{room}: worker-a leads, term {}, ", answer["leader"]["term"])), "{line}");
    let status = json_of(&run(&urls, &["status", &room, "--output", "json"]).await);
    assert_eq!(status["leader"]["term"], answer["leader"]["term"]);
    let both = run(&urls, &["status", "another-room", &room]).await;
    let lines: Vec<_> = text(&both.stdout).lines().collect();
    assert!(
        lines[0] == "another-room: vacant" && lines[1].starts_with(&room),
        "a table is only for terminals: {lines:?}"
    );

    let follower = run(&urls, &["campaign", &room, "--candidate", "worker-b"]).await;
    assert_eq!(
        (follower.status.code(), json_of(&follower)["status"].clone()),
        (Some(10), json!("follower")),
        "{follower:?}"
    );
    let follower = run(&urls, &["campaign", &room, "--candidate", "worker-b", "--wait", "200ms"]).await;
    assert_eq!(follower.status.code(), Some(11), "{follower:?}");

    let resigned = run(&urls, &["resign", &room, "--token-file", token_path]).await;
    assert_eq!(text(&resigned.stdout), format!("{room}: vacant, term {} is over", answer["leader"]["term"]));
    let again = run(&urls, &["resign", &room, "--token-file", token_path]).await;
    assert_eq!(again.status.code(), Some(20), "{again:?}");
    assert_eq!(text(&run(&urls, &["status", &room]).await.stdout), format!("{room}: vacant"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_can_come_from_stdin_or_the_environment() {
    let cluster = Cluster::single().await;
    let urls = cluster.urls();
    for way in ["stdin", "-", "environment"] {
        let won = json_of(&run(&urls, &["campaign", "cli-token-ways", "--candidate", "worker-a"]).await);
        let token = won["leader_token"].as_str().unwrap().to_owned();
        let args: &[&str] =
            if way == "-" { &["resign", "cli-token-ways", "--token-file", "-"] } else { &["resign", "cli-token-ways"] };
        let mut command = command(&urls, args);
        if way == "environment" {
            command.env("QUORATE_LEADER_TOKEN", &token);
        }
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        if way != "environment" {
            writeln!(stdin, "{token}").unwrap();
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{way}: {output:?}");
        assert!(!format!("{output:?}").contains(&token), "{way}");
    }
    let none = run(&urls, &["resign", "cli-token-ways"]).await;
    assert_eq!(none.status.code(), Some(64), "{none:?}");
    let empty = command(&urls, &["resign", "cli-token-ways"]).env("QUORATE_LEADER_TOKEN", "").output().unwrap();
    assert_eq!(empty.status.code(), Some(64), "{empty:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_each_change() {
    let cluster = Cluster::three().await;
    let tool = Tool::start(&cluster.urls(), &["watch", "cli-watch", "--output", "json"]);
    eventually("the first event", || async { (tool.events().last()?["status"] == "vacant").then_some(()) }).await;
    let won = Caller::of(&cluster.nodes[1]).await.win("cli-watch", "worker-a", 60).await;
    eventually("a leader", || async { (tool.events().last()?["leader"]["term"] == won.term).then_some(()) }).await;
    assert_eq!(Caller::of(&cluster.nodes[2]).await.resign("cli-watch", &won.token).await.status, 200);
    eventually("vacant again", || async { (tool.events().last()?["status"] == "vacant").then_some(()) }).await;
    tool.signal(Signal::TERM);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_failure_has_its_exit_code() {
    let cluster = Cluster::single_with(&["--no-elections"]).await;
    for (urls, args, code) in [
        (cluster.urls(), vec!["status", "cli-forbidden"], 77),
        (cluster.urls(), vec!["campaign", "cli-forbidden"], 77),
        (vec!["http://127.0.0.1:1".into()], vec!["status", "cli-nobody", "--timeout", "500ms"], 69),
        (vec!["http://127.0.0.1:1".into()], vec!["create", "--timeout", "500ms"], 69),
        (vec!["http://127.0.0.1:1".into()], vec!["watch", "cli-nobody", "--timeout", "1"], 69),
        (cluster.urls(), vec!["status", "short"], 64),
        (cluster.urls(), vec!["campaign", "cli-usage", "--ttl", "1s"], 64),
        (cluster.urls(), vec!["campaign", "cli-usage", "--candidate", "not a name"], 64),
        (cluster.urls(), vec!["campaign", "cli-usage", "--token-file", "/no/such/folder/token"], 64),
        (vec!["http://192.0.2.1:7400".into()], vec!["campaign", "cli-cleartext"], 64),
        (vec!["http://192.0.2.1:7400".into()], vec!["run", "cli-cleartext", "--", "true"], 64),
    ] {
        let output = run(&urls, &args).await;
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        let error = text(&output.stderr);
        assert!(!error.is_empty(), "{args:?}");
        if args[1] == "cli-cleartext" {
            assert!(error.contains("--allow-insecure-http"), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_is_read_from_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = crate::harness::write_secret(folder.path(), "tokens", "an-access-token-of-a-client\n");
    let tokens = tokens.to_str().unwrap();
    let cluster = Cluster::single_with(&["--access-token-file", tokens]).await;
    let urls = cluster.urls();
    assert_eq!(run(&urls, &["status", "cli-access"]).await.status.code(), Some(77));
    let allowed = run(&urls, &["campaign", "cli-access", "--access-token-file", tokens]).await;
    assert_eq!(allowed.status.code(), Some(0), "{allowed:?}");
    let without = Caller::of(&cluster.nodes[0]).await.status("cli-access").await;
    assert_eq!(without.status, 401, "the cluster demands a token");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_shows_its_version_shell_completions_and_an_example_per_command() {
    let version = json_of(&run(&[], &["version", "--json"]).await);
    assert_eq!((&version["name"], &version["version"]), (&json!("quorate"), &json!(env!("CARGO_PKG_VERSION"))));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&[], &["completions", shell]).await;
        assert!(script.status.success() && text(&script.stdout).contains("campaign"), "{shell}");
    }
    let help = run(&[], &["--help"]).await;
    let commands = text(&help.stdout).lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<_> = commands.map_while(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(commands.len() > 9, "{commands:?}");
    for command in commands {
        let help = run(&[], &[command, "--help"]).await;
        assert!(text(&help.stdout).contains("Example"), "{command} has no example");
    }
}
