//! Fuzz tests of files with settings, secrets and tokens. See `codec::fuzz_tests`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use super::*;
use crate::codec::fuzz_tests::{bounded, try_on};

const FILE: &str = r#"
name = "node-1"
data_dir = "/var/lib/quorate"
listen = "0.0.0.0:7400"
peer_listen = "[::1]:7401"
peers = ["node-1=a:7401", "node-2=b:7401", "node-3=[2001:db8::3]:7401"]
advertise_url = "https://node-1.example:7400"
campaigns_per_minute = 600
trusted_proxies = "10.0.0.0/8,fd00::/8"
max_live_leases = 1_000_000
no_elections = false
raft_heartbeat = "100ms"
raft_election_timeout = "1s 500ms"
snapshot_every = 10000
log_level = "info,openraft=debug"
log_format = "json"
"#;

#[test]
fn a_settings_file_is_read_or_rejected_in_one_line() {
    assert!(RawConfig::from_toml(FILE).and_then(Config::new).is_err(), "peers need a secret");
    let alone: String =
        FILE.lines().filter(|line| !line.starts_with("peers")).map(|line| format!("{line}\n")).collect();
    let alone = alone.replace("[::1]", "127.0.0.1");
    assert!(RawConfig::from_toml(&alone).and_then(Config::new).is_ok());
    for deep in ["peers = ", "a.", "name = {a = "] {
        let text = format!("{deep}{}", if deep.ends_with('.') { deep } else { "[" }.repeat(100_000));
        assert!(RawConfig::from_toml(&text).is_err(), "{deep}, a hundred thousand times");
    }
    try_on(vec![FILE.into(), alone.into_bytes()], |bytes| {
        let text = String::from_utf8_lossy(bytes);
        match bounded(text.len(), || RawConfig::from_toml(&text).and_then(Config::new)) {
            Ok(config) => assert!(!config.name.is_empty()),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
        }
    });
}

#[test]
fn a_file_of_secrets_or_tokens_is_read_or_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    let seed = b"# tokens\naccess-token-one-0001\n\n  access-token-two-0002  \r\n".to_vec();
    try_on(vec![seed], |bytes| {
        let _ = std::fs::remove_file(&path);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        file.write_all(bytes).unwrap();
        for token in bounded(bytes.len(), || access_tokens(&path)).unwrap_or_default() {
            let token = secrecy::ExposeSecret::expose_secret(&token);
            assert!(token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_graphic()), "{token:?}");
        }
        if let Ok(secret) = bounded(bytes.len(), || secret_file::cluster_secret(&path)) {
            assert!(secrecy::ExposeSecret::expose_secret(&secret).len() >= 16);
        }
    });
}
