use super::*;
use crate::config::RawConfig;

const USEFUL: usize = 21_024;

fn config(peers: usize) -> Config {
    let peers = (1..=peers).map(|number| format!("n{number}=127.0.0.{number}:7401")).collect::<Vec<_>>();
    let peers = (!peers.is_empty()).then_some(peers);
    Config::new(RawConfig { name: Some("n1".into()), peers, ..RawConfig::default() }).unwrap()
}

fn shared(limit: usize, config: &Config) -> (usize, usize) {
    let OpenFiles { peer_connections, client_connections } = OpenFiles::share_out(limit, config, USEFUL).unwrap();
    (peer_connections, client_connections)
}

#[test]
fn clients_get_what_the_storage_and_the_peers_do_not_need() {
    assert_eq!(shared(128, &config(0)), (32, 128 - 40 - 37 - 32));
    assert_eq!(shared(1024, &config(3)), (96, 1024 - 40 - 37 - 32 - 96));
    assert_eq!(shared(1024, &config(9)), (288, 1024 - 40 - 37 - 128 - 288));
    assert_eq!(shared(usize::MAX, &config(3)), (96, USEFUL));
}

#[test]
fn a_longer_raft_log_has_more_files() {
    let mut long = config(0);
    long.raft.log_entries_kept = 790_000;
    assert_eq!(shared(2000, &long), (32, 2000 - 40 - 1000 - 32));
    long.raft.log_entries_kept = u64::MAX;
    assert!(OpenFiles::share_out(1 << 20, &long, USEFUL).is_err());
}

#[test]
fn too_few_files_are_refused_with_the_number_that_is_enough() {
    let error = OpenFiles::share_out(124, &config(0), USEFUL).unwrap_err();
    assert!(error.needs_an_operator());
    assert!(error.to_string().contains("may have 124 files open, and needs 125;"), "{error}");
    assert_eq!(shared(125, &config(0)), (32, 16));
}
