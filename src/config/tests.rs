use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::{Args, FromArgMatches};
use secrecy::ExposeSecret;

use super::*;
use crate::http::HttpSettings;

fn typed(arguments: &[&str]) -> RawConfig {
    let command = RawConfig::augment_args(clap::Command::new("quorate").no_binary_name(true));
    RawConfig::from_arg_matches(&command.try_get_matches_from(arguments).unwrap()).unwrap()
}

/// Checks that the error is one line, which names the flag and the fix.
#[track_caller]
fn rejected(arguments: &[&str], flag: &str, fix: &str) {
    let line = Config::new(typed(arguments)).unwrap_err().to_string();
    assert!(line.starts_with(&format!("{flag}: ")), "{line}");
    assert!(line.contains(fix), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
}

fn file(text: &str, mode: u32) -> tempfile::TempPath {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    file.into_temp_path()
}

const PEERS: &str = "n1=127.0.0.1:7401,n2=localhost:7411,n3=[::1]:7421";
const REMOTE_PEERS: &str = "n1=a.example:7401,n2=b.example:7401,n3=c.example:7401";
const SECRET: &str = "correct horse battery staple\n";

/// The default of each flag, as the help and README.md must write it.
fn defaults() -> Vec<(&'static str, String)> {
    let config = Config::new(RawConfig { name: Some("n1".into()), ..RawConfig::default() }).unwrap();
    let duration = |duration| humantime::format_duration(duration).to_string();
    assert!(config.peers.is_empty() && config.advertise_url.is_none() && config.cluster_secret.is_none());
    assert!(config.http.access_tokens.is_empty() && config.http.trusted_proxies.is_empty());
    assert!(config.http.elections_enabled && config.log_format == LogFormat::Auto);
    vec![
        ("name", "the host name".into()),
        ("data-dir", config.data_dir.display().to_string()),
        ("listen", config.listen.to_string()),
        ("peer-listen", config.peer_listen.to_string()),
        ("peers", "this node alone".into()),
        ("advertise-url", "from --listen".into()),
        ("cluster-secret-file", "none".into()),
        ("access-token-file", "none".into()),
        ("campaigns-per-minute", config.http.campaigns_per_minute.to_string()),
        ("trusted-proxies", "none".into()),
        ("max-live-leases", config.service.live_leases_max.to_string()),
        ("max-watches", config.http.streams_max.to_string()),
        ("max-watches-per-client", config.http.streams_per_client_max.to_string()),
        ("no-elections", "off".into()),
        ("raft-heartbeat", duration(config.consensus.heartbeat)),
        ("raft-election-timeout", duration(config.consensus.raft_election_timeout)),
        ("snapshot-every", config.consensus.snapshot_every.to_string()),
        ("log-entries-kept", config.consensus.log_entries_kept.to_string()),
        ("log-level", config.log_level),
        ("log-format", "auto".into()),
    ]
}

#[test]
fn the_help_names_the_default_of_each_flag() {
    let command = RawConfig::augment_args(clap::Command::new("quorate"));
    let named = command.get_arguments().map(|argument| {
        let help = argument.get_help().unwrap().to_string();
        let (_, default) = help.split_once("[default: ").unwrap_or_else(|| panic!("no default in: {help}"));
        (argument.get_long().unwrap(), default.strip_suffix(']').unwrap().to_owned())
    });
    assert_eq!(named.collect::<Vec<_>>(), defaults());
}

/// A row of the table is like "| `--max-watches`, `--max-watches-per-client` | 1024, 8 | streams at this node |".
#[test]
fn the_readme_names_the_default_of_each_flag() {
    let mut named = Vec::new();
    for row in include_str!("../../README.md").lines().filter(|line| line.starts_with("| `--")) {
        let row = row.replace('`', "");
        let cells: Vec<Vec<&str>> = row.split('|').map(|cell| cell.trim().split(", ").collect()).collect();
        assert_eq!(cells[1].len(), cells[2].len(), "one default for each flag: {row}");
        named.extend(cells[1].iter().map(|flag| flag[2..].to_owned()).zip(cells[2].iter().map(ToString::to_string)));
    }
    let expected = defaults().into_iter().map(|(flag, default)| (flag.to_owned(), default));
    assert_eq!(BTreeMap::from_iter(named), BTreeMap::from_iter(expected));
}

#[test]
fn the_default_name_is_the_host_name() {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    assert_eq!(Config::new(RawConfig::default()).map(|config| config.name).ok(), Some(host));
}

#[test]
fn flags_win_over_variables_then_the_file_then_the_defaults() {
    // All tests of this process share its variables, so this test sets them for a second process.
    if std::env::var_os("QUORATE_NAME").is_none() {
        let test = "config::tests::flags_win_over_variables_then_the_file_then_the_defaults";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", test]);
        again.env("QUORATE_NAME", "by-variable").env("QUORATE_LISTEN", "127.0.0.1:2").env("QUORATE_NO_ELECTIONS", "1");
        let output = again.output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
        return;
    }
    let file = file("name = 'by-file'\nlisten = '127.0.0.1:3'\npeer_listen = '127.0.0.1:4'\nmax_watches = 9", 0o644);
    let config = Config::load(typed(&["--name", "by-flag"]), Some(&file)).unwrap();
    assert_eq!(config.name, "by-flag");
    assert_eq!(config.listen.port(), 2);
    assert_eq!((config.peer_listen.port(), config.http.streams_max), (4, 9));
    assert_eq!(config.http.streams_per_client_max, HttpSettings::default().streams_per_client_max);
    assert!(!config.http.elections_enabled);
}

#[test]
fn each_flag_has_a_variable_and_a_key_named_after_it() {
    let command = RawConfig::augment_args(clap::Command::new("quorate"));
    for argument in command.get_arguments() {
        let flag = argument.get_long().unwrap();
        let variable = argument.get_env().unwrap().to_str().unwrap();
        let rule = format!("QUORATE_{}", flag.to_uppercase().replace('-', "_"));
        assert!(variable == rule || (flag, variable) == ("log-level", "QUORATE_LOG"), "{flag} {variable}");
        // No setting is a table, so the error for a known key is about its type and not its name.
        let error = RawConfig::from_toml(&format!("{} = {{}}", flag.replace('-', "_"))).unwrap_err();
        assert!(!error.problem.contains("unknown"), "{error}");
    }
}

#[test]
fn every_key_of_the_file_is_read() {
    let text = "
        name = 'n1'
        data_dir = '/var/lib/quorate'
        listen = '0.0.0.0:7400'
        peer_listen = '127.0.0.1:7401'
        peers = ['n1=127.0.0.1:7401', 'n2=127.0.0.1:7411']
        advertise_url = 'https://n1.example/'
        campaigns_per_minute = 1
        trusted_proxies = '10.0.0.0/8, ::1'
        max_live_leases = 2
        max_watches = 3
        max_watches_per_client = 3
        no_elections = true
        raft_heartbeat = '20ms'
        raft_election_timeout = '1s'
        snapshot_every = 5
        log_entries_kept = 1000
        log_level = 'info,openraft=debug'
        log_format = 'json'";
    let secret = file(SECRET, 0o600);
    let text = format!("{text}\n cluster_secret_file = {:?}", secret.to_str().unwrap());
    let raw = RawConfig::from_toml(&text).unwrap();
    let config = Config::new(raw.clone()).unwrap();
    assert_eq!(config.peers[1], Peer { name: "n2".into(), address: "127.0.0.1:7411".into() });
    assert_eq!(config.advertise_url.as_deref(), Some("https://n1.example"));
    assert_eq!(config.http.trusted_proxies.len(), 2);
    assert_eq!(config.log_format, LogFormat::Json);
    assert_eq!(RawConfig::default().or(raw.clone()), raw);
    assert_eq!(raw.clone().or(RawConfig::default()), raw);
}

#[test]
fn an_unknown_key_is_rejected_with_its_name_and_line() {
    let line = RawConfig::from_toml("name = 'n1'\nlistn = '127.0.0.1:1'").unwrap_err().to_string();
    assert!(line.starts_with("--config: line 2: ") && line.contains("`listn`"), "{line}");
    assert_eq!(line.lines().count(), 1);
    let line = RawConfig::from_toml("max_watches = 'many'").unwrap_err().to_string();
    assert!(line.starts_with("--config: line 1: "), "{line}");
}

#[test]
fn a_missing_file_is_rejected() {
    let error = Config::load(RawConfig::default(), Some(Path::new("/no/such/file.toml"))).unwrap_err();
    assert!(error.to_string().starts_with("--config: /no/such/file.toml can't be read"), "{error}");
}

#[test]
fn unknown_variables_are_reported_unless_kubernetes_set_them() {
    let set = ["QUORATE_NAME", "QUORATE_NAEM", "QUORATE_SERVICE_HOST", "QUORATE_PEER_SERVICE_PORT_HTTP", "PATH"];
    let linked = ["QUORATE_PORT", "QUORATE_PORT_7400_TCP_ADDR"];
    let unknown = unknown_variables(&["QUORATE_NAME".into()], set.into_iter().chain(linked).map(str::to_owned));
    assert_eq!(unknown.len(), 1);
    assert!(unknown[0].starts_with("QUORATE_NAEM "));
}

#[test]
fn invalid_values_are_rejected() {
    rejected(&["--name", ""], "--name", "write 1 to 64 characters");
    rejected(&["--name", "näme"], "--name", "A-Z a-z 0-9 . _ -");
    rejected(&["--name", &"n".repeat(65)], "--name", "1 to 64");
    rejected(&["--name", "two\nlines"], "--name", "1 to 64");
    // The value of a flag can't be empty, but that of a key in the file can.
    let empty = Config::new(RawConfig { data_dir: Some("".into()), ..RawConfig::default() }).unwrap_err();
    assert_eq!(empty.to_string(), "--data-dir: the path is empty; name a directory, such as ./quorate-data");
    rejected(&["--listen", "localhost:7400"], "--listen", "write an IP address and a port");
    rejected(&["--peer-listen", "7401"], "--peer-listen", "write an IP address and a port");
    rejected(&["--advertise-url", "n1.example:7400"], "--advertise-url", "http://");
    rejected(&["--advertise-url", "http://me:pass@n1.example"], "--advertise-url", "http://");
    rejected(&["--trusted-proxies", "10.0.0.0/33"], "--trusted-proxies", "10.0.0.0/8");
    rejected(&["--campaigns-per-minute", "0"], "--campaigns-per-minute", "--no-elections");
    rejected(&["--max-live-leases", "0"], "--max-live-leases", "write 1 or more");
    rejected(&["--raft-heartbeat", "100"], "--raft-heartbeat", "such as 500ms or 30s");
    rejected(&["--raft-heartbeat", "1ms"], "--raft-heartbeat", "from 10ms to 1m");
    rejected(&["--raft-election-timeout", "1h"], "--raft-election-timeout", "from 10ms to 1m");
    rejected(&["--snapshot-every", "0"], "--snapshot-every", "write 1 or more");
    rejected(&["--log-entries-kept", "999"], "--log-entries-kept", "write 1000 or more");
    rejected(&["--log-level", "info,[["], "--log-level", "write error, warn, info");
}

#[test]
fn contradicting_values_are_rejected() {
    let short = ["--raft-heartbeat", "200ms"];
    rejected(&short, "--raft-election-timeout", "lower --raft-heartbeat");
    assert!(Config::new(typed(&["--raft-heartbeat", "200ms", "--raft-election-timeout", "600ms"])).is_ok());
    rejected(&["--listen", "127.0.0.1:7401"], "--peer-listen", "another port");
    rejected(&["--listen", "0.0.0.0:7401"], "--peer-listen", "another port");
    rejected(&["--max-watches", "7"], "--max-watches-per-client", "raise --max-watches");
}

#[test]
fn invalid_lists_of_peers_are_rejected() {
    for list in ["n1", "n1=", "n1=host", "n1=host:0", "n1=::1:7401", "n1=ho st:7401", "n1=[::g]:7401", ""] {
        rejected(&["--name", "n1", "--peers", list], "--peers", "write name=host:port");
    }
    rejected(&["--name", "n1", "--peers", "n/1=localhost:7401"], "--peers", "not a valid node name");
    rejected(&["--name", "n1", "--peers", "n1=a:1,n1=b:1"], "--peers", "its own name");
    rejected(&["--name", "n1", "--peers", "n1=a:1,n2=a:1"], "--peers", "its own peer address");
    rejected(&["--name", "n4", "--peers", PEERS], "--peers", "add n4=host:port, or set --name");
}

#[test]
fn a_node_with_peers_needs_a_secret_on_loopback_too() {
    rejected(&["--name", "n1", "--peers", REMOTE_PEERS], "--peers", "--cluster-secret-file");
    rejected(&["--name", "n1", "--peers", PEERS], "--peers", "--cluster-secret-file");
    rejected(&["--name", "n1", "--peers", "n1=127.0.0.1:7401"], "--peers", "--cluster-secret-file");
    assert!(Config::new(typed(&["--peer-listen", "0.0.0.0:7401"])).is_ok(), "without peers it is not opened");

    let secret = file(SECRET, 0o600);
    let secret = secret.to_str().unwrap();
    let open = ["--name", "n1", "--peers", REMOTE_PEERS, "--peer-listen", "0.0.0.0:7401"];
    let config = Config::new(typed(&[&open[..], &["--cluster-secret-file", secret]].concat())).unwrap();
    assert_eq!(config.cluster_secret.as_ref().unwrap().expose_secret(), SECRET.trim());
    assert!(!format!("{config:?}").contains("horse"));
}

#[test]
fn secrets_that_others_can_read_or_guess_are_rejected() {
    for mode in [0o640, 0o604, 0o620] {
        let path = file(SECRET, mode);
        let path = path.to_str().unwrap();
        rejected(&["--cluster-secret-file", path], "--cluster-secret-file", &format!("chmod 600 {path}"));
        rejected(&["--access-token-file", path], "--access-token-file", &format!("chmod 600 {path}"));
    }
    let short = file("  fifteen bytes!!  \n", 0o600);
    rejected(&["--cluster-secret-file", short.to_str().unwrap()], "--cluster-secret-file", "openssl rand");
    rejected(&["--cluster-secret-file", "/no/such/file"], "--cluster-secret-file", "name a text file");
    let large = file(&"x".repeat((1 << 20) + 1), 0o600);
    rejected(&["--cluster-secret-file", large.to_str().unwrap()], "--cluster-secret-file", "name the file");
}

#[test]
fn access_tokens_stand_one_per_line() {
    let tokens = file("# for the batch jobs\n\n0123456789abcdef\n  fedcba9876543210\n", 0o400);
    let config = Config::new(typed(&["--access-token-file", tokens.to_str().unwrap()])).unwrap();
    let tokens: Vec<&str> = config.http.access_tokens.iter().map(ExposeSecret::expose_secret).collect();
    assert_eq!(tokens, ["0123456789abcdef", "fedcba9876543210"]);

    let empty = file("# no tokens yet\n", 0o600);
    rejected(&["--access-token-file", empty.to_str().unwrap()], "--access-token-file", "write one token per line");
    let spaced = file("two words with spaces", 0o600);
    rejected(&["--access-token-file", spaced.to_str().unwrap()], "--access-token-file", "without spaces");
}

#[test]
fn a_node_is_reached_at_its_advertised_address_or_where_it_listens() {
    let bound = "127.0.0.1:34567".parse().unwrap();
    let anywhere = "0.0.0.0:7400".parse().unwrap();
    let alone = Config::new(typed(&["--name", "n1"])).unwrap();
    assert_eq!(alone.client_url(bound), "http://127.0.0.1:34567");
    assert_eq!(alone.client_url(anywhere), "http://n1:7400");
    assert_eq!((alone.peer_address(bound), alone.peer_address(anywhere)), (bound.to_string(), "n1:7400".into()));

    let secret = file(SECRET, 0o600);
    let secret = ["--cluster-secret-file", secret.to_str().unwrap()];
    let member = Config::new(typed(&[&["--name", "n2", "--peers", PEERS][..], &secret].concat())).unwrap();
    assert_eq!(member.client_url(anywhere), "http://localhost:7400");
    assert_eq!(member.peer_address(anywhere), "localhost:7411");
    let advertised = Config::new(typed(&["--advertise-url", "http://n1.example:80/"])).unwrap();
    assert_eq!(advertised.client_url(bound), "http://n1.example:80");
}

#[test]
fn the_log_format_depends_on_the_terminal_unless_it_is_set() {
    assert_eq!([true, false].map(|terminal| LogFormat::Auto.is_json(terminal)), [false, true]);
    assert!(LogFormat::Json.is_json(true) && !LogFormat::Text.is_json(false));
}
