//! `quorate serve` from the outside: what it says when it can't start, and how soon it serves when it can.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Cluster, Node, fresh_address, write_secret};

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the program to its end, which must come soon.
fn run(folder: &Path, args: &[&str]) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(args)
        .env_clear()
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started_at = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started_at.elapsed() > Duration::from_secs(5) {
            child.kill().unwrap();
            panic!("{args:?} goes on: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    Ended { code: status.code(), stdout, stderr }
}

/// Runs `quorate serve` on addresses of its own, and checks that it ends with one line that says all of `says`
/// and says each once.
#[track_caller]
fn refuses(folder: &Path, args: &[&str], says: &[&str]) {
    let ip = fresh_address();
    let (listen, peer_listen) = (format!("{ip}:7400"), format!("{ip}:7401"));
    let mut all = vec!["serve"];
    for (flag, default) in [("--listen", &*listen), ("--peer-listen", &*peer_listen), ("--data-dir", "fresh")] {
        if !args.contains(&flag) {
            all.extend([flag, default]);
        }
    }
    all.extend(args);
    let ended = run(folder, &all);
    assert_eq!((ended.code, &*ended.stdout), (Some(78), ""), "{args:?}: {}", ended.stderr);
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| says.iter().all(|part| line.contains(part))).collect();
    assert_eq!(lines.len(), 1, "{args:?} says {:?}, wanted {says:?}", ended.stderr);
    for part in says {
        assert_eq!(ended.stderr.matches(part).count(), 1, "{part:?} in {}", ended.stderr);
    }
    let errors = ended.stderr.lines().filter(|line| line.starts_with("quorate:") || line.contains("\"ERROR\""));
    assert_eq!(errors.count(), 1, "{}", ended.stderr);
    let fresh = folder.join("fresh");
    assert!(!fresh.exists() || args.contains(&"--data-dir"), "nothing was made: {}", ended.stderr);
}

#[test]
fn a_setting_that_cannot_work_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("bad.toml"), "name = \"n1\"\nlissten = \"127.0.0.1:7400\"\n").unwrap();
    refuses(
        folder,
        &["--config", "bad.toml"],
        &["--config: bad.toml, line 2", "unknown field `lissten`", "a key is the name of a flag without --"],
    );
    std::fs::write(folder.join("broken.toml"), "name = \n").unwrap();
    refuses(folder, &["--config", "broken.toml"], &["--config: broken.toml, line 1"]);
    refuses(folder, &["--config", "none.toml"], &["--config: none.toml", "name a file"]);

    std::fs::create_dir(folder.join("foreign")).unwrap();
    std::fs::write(folder.join("foreign/thesis.txt"), "years of work").unwrap();
    refuses(
        folder,
        &["--data-dir", "foreign"],
        &["--data-dir: foreign is not", "thesis.txt", "use an empty directory"],
    );
    assert_eq!(std::fs::read_dir(folder.join("foreign")).unwrap().count(), 1, "it is left as it was");
    // Whoever runs the tests as root can read everything; a file in the way stops root too.
    let mut newer = quorate::codec::encode("an identity").unwrap();
    newer[0] = quorate::codec::FORMAT + 1;
    let checksum = crc32fast::hash(&newer[..5]);
    newer[5..9].copy_from_slice(&checksum.to_be_bytes());
    std::fs::create_dir(folder.join("newer")).unwrap();
    std::fs::write(folder.join("newer/identity"), &newer).unwrap();
    refuses(
        folder,
        &["--data-dir", "newer"],
        &["--data-dir: the identity newer/identity", "wrote it in format 2", "start the newer version again"],
    );
    assert_eq!(std::fs::read(folder.join("newer/identity")).unwrap(), newer, "it is left as it was");
    let way = ["--data-dir: ", "cannot create", "use another data directory"];
    refuses(folder, &["--data-dir", "foreign/thesis.txt/data"], &way);
    refuses(folder, &["--data-dir", "foreign/thesis.txt"], &way);

    let open = write_secret(folder, "open", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let says = ["other users can access open (mode 644)", "run `chmod 600 open`"];
    refuses(folder, &["--cluster-secret-file", "open"], &[&["--cluster-secret-file: "][..], &says].concat());
    refuses(folder, &["--access-token-file", "open"], &[&["--access-token-file: "][..], &says].concat());
    write_secret(folder, "short", "guess-me");
    refuses(folder, &["--cluster-secret-file", "short"], &["--cluster-secret-file: short", "openssl rand"]);

    let says = ["--peers: there is no cluster secret", "set --cluster-secret-file"];
    refuses(folder, &["--name", "n1", "--peers", "n1=127.0.0.1:7401,n2=127.0.0.1:7411"], &says);
    refuses(
        folder,
        &["--name", "n9", "--peers", "n1=127.0.0.1:7401,n2=127.0.0.1:7411"],
        &["--peers: this node, \"n9\"", "add n9=host:port"],
    );
}

#[test]
fn an_unknown_flag_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    for args in
        [&["serve", "--no-such-flag"][..], &["serve", "extra"], &["dance"], &["serve", "--snapshot-every", "often"]]
    {
        let ended = run(folder.path(), args);
        assert_eq!((ended.code, &*ended.stdout), (Some(64), ""), "{args:?}");
        let last = args.last().unwrap();
        assert_eq!(
            ended.stderr.lines().filter(|line| line.starts_with("error:") && line.contains(last)).count(),
            1,
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains("--help"), "{}", ended.stderr);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn help_and_version_are_answers() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["--help"][..], &["--version"], &["serve", "--help"], &["-h"]] {
        let ended = run(folder.path(), args);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{args:?}");
        assert!(ended.stdout.contains("quorate"), "{}", ended.stdout);
    }
    assert_eq!(run(folder.path(), &["--version"]).stdout, format!("quorate {}\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_node_has_is_not_taken_from_it() {
    let cluster = Cluster::single_with_peer_listener(None).await;
    let running = &cluster.nodes[0].settings;
    let folder = tempfile::tempdir().unwrap();
    let (listen, peer_listen) = (format!("{}:7400", running.address), format!("{}:7401", running.address));
    let remedy = "is another node running? choose another address with";
    refuses(folder.path(), &["--listen", &listen], &[&format!("--listen {listen}"), "Address already in use", remedy]);
    let says = [&format!("--peer-listen {peer_listen}"), "Address already in use", remedy];
    let secret = write_secret(folder.path(), "secret", "0123456789abcdef0123456789abcdef");
    let peers = ["--name", "n1", "--peers", "n1=127.0.0.1:7401", "--cluster-secret-file", secret.to_str().unwrap()];
    refuses(folder.path(), &[&["--peer-listen", &peer_listen][..], &peers].concat(), &says);
    let data_dir = running.data_dir.to_str().unwrap();
    refuses(folder.path(), &["--data-dir", data_dir], &["--data-dir: ", "in use by another process", "stop that one"]);
    assert!(cluster.nodes[0].is_ready().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_serves_soon_after_its_start_in_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    let started_at = Instant::now();
    let cluster =
        Cluster { nodes: vec![Node::start(crate::harness::NodeSettings::single(folder.path()))], _folder: folder };
    let output = crate::harness::eventually("the welcome", || async {
        let output = cluster.nodes[0].output();
        output.contains("quorate is ready at").then_some(output)
    })
    .await;
    let took = started_at.elapsed();
    println!("from start to ready: {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(cluster.nodes[0].is_ready().await, "what it says is true");
    assert!(output.contains(&format!("ROOM={}/elections/hello-world", cluster.nodes[0].url())), "{output}");
}
