use super::*;
use crate::config::RawConfig;

fn config(peers: usize) -> Config {
    let peers = (1..=peers).map(|number| format!("n{number}=127.0.0.{number}:7401")).collect::<Vec<_>>();
    let peers = (!peers.is_empty()).then_some(peers);
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut secret, b"a secret of enough bytes").unwrap();
    let cluster_secret_file = Some(secret.path().to_owned());
    Config::new(RawConfig { name: Some("n1".into()), peers, cluster_secret_file, ..RawConfig::default() }).unwrap()
}

fn divided(limit: usize, config: &Config) -> (usize, usize) {
    let OpenFiles { peer_connections, client_connections } = OpenFiles::divide(limit, config).unwrap();
    (peer_connections, client_connections)
}

#[test]
fn clients_get_the_files_that_storage_and_peers_do_not_need() {
    assert_eq!(divided(128, &config(0)), (0, 128 - 40 - 37));
    assert_eq!(divided(1024, &config(3)), (96, 1024 - 40 - 37 - 32 - 96));
    assert_eq!(divided(1024, &config(9)), (288, 1024 - 40 - 37 - 128 - 288));
    assert_eq!(divided(usize::MAX, &config(3)), (96, 21_024));
}

#[test]
fn a_longer_raft_log_needs_more_files() {
    let mut long = config(0);
    long.consensus.log_entries_kept = 790_000;
    assert_eq!(divided(2000, &long), (0, 2000 - 40 - 1000));
    long.consensus.log_entries_kept = u64::MAX;
    assert!(OpenFiles::divide(1 << 20, &long).is_err());
}

#[test]
fn too_few_files_are_rejected_with_the_number_that_is_enough() {
    let error = OpenFiles::divide(92, &config(0)).unwrap_err();
    assert!(error.needs_an_operator());
    assert!(error.to_string().contains("may have 92 files open, and needs 93;"), "{error}");
    assert_eq!(divided(93, &config(0)), (0, 16));
}
