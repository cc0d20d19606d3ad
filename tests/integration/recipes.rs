//! The recipes in `scripts/recipes/`, unchanged, against real nodes that are killed while the recipes work.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::caller::Caller;
use crate::client_probe::Probe;
use crate::client_process::{Tool, boot_time};
use crate::client_proxy::{Fault, Proxy};
use crate::harness::{Cluster, Node, eventually};

const TTL: Duration = Duration::from_secs(10);

/// If the cluster commits nothing for longer than this, a lease of 10 s may be lost. Some recipes stop their work 6 s
/// after the last renewal, and up to 3.7 s of that may have passed when the next renewal is due.
const EXCUSE: Duration = Duration::from_millis(2_200);

/// On a busy machine a line may be read this much later than it was printed.
const READ_LATE: Duration = Duration::from_millis(500);

/// The recipes that keep their room for as long as they can, and the tools that they need.
const LEADERS: [(&str, &[&str]); 4] = [
    ("lead.sh", &["bash", "curl", "jq", "setpriv"]),
    ("lead.py", &["python3"]),
    ("lead.mjs", &["node"]),
    ("report.service", &[]),
];

/// A command that prints again and again under which term it works. `lead.py` and `lead.mjs` do so themselves.
const WORK: &str = r#"while :; do echo "working under term $QUORATE_TERM"; sleep 0.1; done"#;

fn recipe(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/recipes").join(name)
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(recipe(name)).unwrap()
}

/// Prints to stderr directly. The test harness hides what a successful test prints in other ways.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// Whether all these tools are installed. If not, prints that the recipe is skipped.
fn are_there(recipe: &str, tools: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let is_there = |tool: &&&str| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    let missing: Vec<_> = tools.iter().filter(|tool| !is_there(tool)).collect();
    if !missing.is_empty() {
        say(&format!("SKIPPED: the recipe {recipe} isn't tested, because these tools are missing: {missing:?}"));
    }
    missing.is_empty()
}

/// Stands for a host on which a recipe is installed. Its files are in a temporary folder.
struct Host {
    folder: tempfile::TempDir,
    urls: String,
}

impl Host {
    /// A host whose `/usr/local/bin/report` is this shell script.
    fn with_report(cluster: &Cluster, script: &str) -> Host {
        let host = Host { folder: tempfile::tempdir().unwrap(), urls: cluster.urls().join(",") };
        std::fs::write(host.report(), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(host.report(), PermissionsExt::from_mode(0o755)).unwrap();
        host
    }

    fn report(&self) -> PathBuf {
        self.folder.path().join("report")
    }

    /// The text of a recipe, with the paths of this host.
    fn localised(&self, text: &str) -> String {
        text.replace("/usr/local/bin/quorate", env!("CARGO_BIN_EXE_quorate"))
            .replace("/usr/local/bin/report", self.report().to_str().unwrap())
    }

    fn start(&self, program: impl AsRef<Path>, args: &[&str]) -> Tool {
        let mut command = Command::new(program.as_ref());
        command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        // Otherwise Python would write a cache into the folder of the recipes.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("QUORATE_URL", &self.urls).env("TTL", TTL.as_secs().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Tool::spawn(command)
    }

    /// Starts a candidate of this recipe. It works for as long as it leads `room`.
    fn start_worker(&self, recipe_name: &str, room: &str) -> Tool {
        match recipe_name {
            "lead.sh" => self.start(recipe(recipe_name), &[room, self.report().to_str().unwrap()]),
            "report.service" => {
                let line = self.localised(&exec_start()).replace("nightly-report", room);
                let line = line.replace("--ttl 15s", &format!("--ttl {}s", TTL.as_secs()));
                let words: Vec<_> = line.split(' ').collect();
                self.start(words[0], &words[1..])
            }
            _ => self.start(recipe(recipe_name), &[room]),
        }
    }
}

fn room_of(recipe: &str) -> String {
    format!("recipe-{}", recipe.replace('.', "-"))
}

/// The command of the systemd unit.
fn exec_start() -> String {
    text_of("report.service").lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap().to_owned()
}

/// The moments at which the tool worked, each with its term.
fn work(tool: &Tool) -> Vec<(Duration, u64)> {
    let read = |(at, line): (Duration, String)| Some((at, line.split_once("under term ")?.1.parse().ok()?));
    tool.heard().into_iter().filter_map(read).collect()
}

async fn works(tool: &Tool) -> u64 {
    eventually("work", || async { work(tool).last().map(|(_, term)| *term) }).await
}

/// Two candidates of one recipe for the same room. The first works, and the second waits.
struct Pair {
    recipe: &'static str,
    room: String,
    first: Tool,
    second: Tool,
    term: u64,
}

impl Pair {
    async fn start(host: &Host, recipe: &'static str) -> Pair {
        let room = room_of(recipe);
        let first = host.start_worker(recipe, &room);
        let term = works(&first).await;
        let second = host.start_worker(recipe, &room);
        Pair { recipe, room, first, second, term }
    }

    /// Waits until the first one has worked for longer than the lease that it had at `moment`, or until it has ended.
    /// In either case, it must have worked under one term only.
    async fn outlive(&mut self, moment: Duration) {
        let outlived = moment + TTL + Duration::from_secs(1);
        while self.first.is_running() && work(&self.first).last().unwrap().0 < outlived {
            assert!(boot_time() < outlived + Duration::from_secs(30), "{}: neither works nor ends", self.recipe);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let lines = work(&self.first);
        assert!(lines.iter().all(|(_, term)| *term == self.term), "{}: it worked under another term", self.recipe);
    }

    /// Waits until the first one has ended by itself, and checks that the second one leads only after that.
    async fn hand_over(&mut self) {
        assert_eq!(self.first.exit_code().await, 20, "{}: {}", self.recipe, self.first.stderr());
        let next = works(&self.second).await;
        assert!(next > self.term, "{}: {next} after {}", self.recipe, self.term);
        let (last, then) = (work(&self.first).last().unwrap().0, work(&self.second)[0].0);
        assert!(last < then, "{}: the first one worked at {last:?}, the second one at {then:?}", self.recipe);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_recipe_outlives_the_raft_leader_and_stops_in_time_when_no_node_is_left() {
    let mut cluster = Cluster::three().await;
    let probe = Probe::start(cluster.urls());
    let host = Host::with_report(&cluster, WORK);
    let mut pairs = Vec::new();
    for (recipe, _) in LEADERS.iter().filter(|(recipe, tools)| are_there(recipe, tools)) {
        pairs.push(Pair::start(&host, recipe).await);
    }

    let raft_leader = cluster.raft_leader().await;
    probe.longest_gap();
    cluster.nodes[raft_leader].kill();
    let killed = boot_time();
    for pair in &mut pairs {
        pair.outlive(killed).await;
    }
    let gap = probe.longest_gap();
    cluster.nodes[raft_leader].start_again();
    cluster.ready().await;
    for pair in &mut pairs {
        if !pair.first.is_running() {
            assert!(
                gap > EXCUSE,
                "{} lost its term although the cluster was working: {}",
                pair.recipe,
                pair.first.stderr()
            );
            say(&format!("excused: {}: the cluster committed nothing for {gap:?}", pair.recipe));
            pair.hand_over().await;
            let third = host.start_worker(pair.recipe, &pair.room);
            pair.first = std::mem::replace(&mut pair.second, third);
            pair.term = works(&pair.first).await;
        }
        assert_eq!(work(&pair.second), [], "{}: the second one worked while the first one led", pair.recipe);
    }

    cluster.nodes.iter_mut().for_each(Node::kill);
    let all_killed = boot_time();
    for pair in &mut pairs {
        assert_eq!(pair.first.exit_code().await, 20, "{}: {}", pair.recipe, pair.first.stderr());
        let last = work(&pair.first).last().unwrap().0;
        // The last renewal was sent before the nodes were killed, and authority ends at 80 % of the lease.
        assert!(last <= all_killed + TTL * 8 / 10 + READ_LATE, "{}: {:?} after", pair.recipe, last - all_killed);
    }
    cluster.nodes.iter_mut().for_each(Node::start_again);
    cluster.ready().await;
    for pair in &mut pairs {
        pair.hand_over().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_recipe_leaves_a_node_that_rejects_renewals() {
    let cluster = Cluster::single().await;
    let reject =
        |_: &str, _| Fault::Answer(401, r#"{"error":"No","code":"authentication_failed","request_id":"req_1"}"#);
    let mut host = Host::with_report(&cluster, WORK);
    let (mut proxies, mut tools) = (Vec::new(), Vec::new());
    for (recipe, _) in LEADERS.iter().filter(|(recipe, tools)| are_there(recipe, tools)) {
        let proxy = Proxy::start(cluster.urls()[0].clone(), |_, _| Fault::Pass).await;
        host.urls = format!("{},{}", proxy.url, cluster.urls()[0]);
        let tool = host.start_worker(recipe, &room_of(recipe));
        works(&tool).await;
        proxy.set(reject);
        proxies.push(proxy);
        tools.push((*recipe, tool));
    }
    let outlived = boot_time() + TTL + Duration::from_secs(1);
    for (recipe, tool) in &mut tools {
        while work(tool).last().unwrap().0 < outlived {
            assert!(tool.is_running(), "{recipe}: {}", tool.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert!(proxies.iter().all(|proxy| proxy.requests() > 0), "a recipe sent no renewal to the node that rejects them");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_recipe_passes_signals_and_exit_codes_on_and_gives_the_room_up() {
    if !are_there(LEADERS[0].0, LEADERS[0].1) {
        return;
    }
    let cluster = Cluster::single().await;
    let host = Host::with_report(&cluster, &format!("trap 'exit 7' TERM; {WORK}"));
    let mut tool = host.start_worker("lead.sh", "recipe-shell-ends");
    works(&tool).await;
    tool.signal(Signal::TERM);
    assert_eq!(tool.exit_code().await, 7, "{}", tool.stderr());
    let room = Caller::of(&cluster.nodes[0]).await.status("recipe-shell-ends").await;
    assert_eq!(room.body["status"], "vacant");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_hosts_with_the_crontab_runs_the_job_although_the_raft_leader_is_killed() {
    let mut cluster = Cluster::three().await;
    let host = Host::with_report(&cluster, "echo runs under term $QUORATE_TERM; sleep 3; echo done");
    let crontab = host.localised(&text_of("crontab")).replace("sleep 60", "sleep 1");
    // Five fields of time and one of the user stand before the command.
    let command = crontab.lines().last().unwrap().splitn(7, ' ').last().unwrap();
    let mut hosts = [(); 2].map(|()| host.start("/bin/sh", &["-c", command]));
    eventually("the job", || async { hosts.iter().any(|host| !work(host).is_empty()).then_some(()) }).await;
    let raft_leader = cluster.raft_leader().await;
    cluster.nodes[raft_leader].kill();
    let mut ends = BTreeMap::new();
    for tool in &mut hosts {
        let code = tool.exit_code().await;
        ends.insert(code, tool.stdout());
    }
    assert_eq!(ends.keys().copied().collect::<Vec<_>>(), [0, 10], "{ends:?}");
    assert!(ends[&0].ends_with("done") && ends[&10].is_empty(), "{ends:?}");
    let term = hosts.iter().flat_map(work).map(|(_, term)| term).next().unwrap();

    let mut next_night = host.start("/bin/sh", &["-c", command]);
    assert_eq!(next_night.exit_code().await, 0, "{}", next_night.stderr());
    assert!(work(&next_night)[0].1 > term);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_turns_away_a_late_write_of_an_old_leader() {
    if !are_there("fencing.py", &["python3"]) {
        return;
    }
    let mut cluster = Cluster::three().await;
    let host = Host::with_report(&cluster, "");
    let database = host.folder.path().join("reports.sqlite");
    let start = |name: &str| host.start(recipe("fencing.py"), &[database.to_str().unwrap(), "recipe-fencing", name]);
    let mut old = start("worker-a");
    let old_term = works(&old).await;
    let new = start("worker-b");
    let raft_leader = cluster.raft_leader().await;
    cluster.nodes[raft_leader].kill();

    // The old leader is stopped right after a write, because it would keep the database locked during a write.
    let written = work(&old).len();
    eventually("one more write", || async { (work(&old).len() > written).then_some(()) }).await;
    old.signal(Signal::STOP);
    let new_term = works(&new).await;
    assert!(new_term > old_term);
    old.signal(Signal::CONT);
    assert_eq!(old.exit_code().await, 20, "{}", old.stderr());
    assert!(old.stdout().ends_with(&format!("turned away: term {old_term} is over")), "{}", old.stdout());
    let written = work(&new).len();
    eventually("the new leader writes on", || async { (work(&new).len() > written).then_some(()) }).await;
}

#[test]
fn systemd_accepts_the_unit() {
    if !are_there("report.service, by systemd", &["systemd-analyze"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("report.service");
    let localised = text_of("report.service").replace("/usr/local/bin/quorate", env!("CARGO_BIN_EXE_quorate"));
    for (text, good) in [(localised.clone(), true), (localised.replace("KillMode=mixed", "KillMode=gentle"), false)] {
        std::fs::write(&unit, text).unwrap();
        let verified = Command::new("systemd-analyze").arg("verify").arg(&unit).output().unwrap();
        let silent = verified.status.success() && verified.stdout.is_empty() && verified.stderr.is_empty();
        assert_eq!(silent, good, "{verified:?}");
    }
}
