//! A process that writes is killed at a random moment. The next start must find everything that was acknowledged, and
//! must not mistake unfinished writes for damage.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use openraft::RaftLogReader;
use openraft::storage::RaftLogStorage;
use quorate::raft_types::Vote;
use quorate::random::SystemRandom;
use quorate::storage::{Storage, StorageConfig};

use crate::storage_fixtures::{append, config, entry, log_id, read_all, state, write_snapshot};

const DIR: &str = "QUORATE_KILL_DIR";
const KILLS: u64 = 15;
const RAFT_TERM: u64 = 1;

fn open_there(dir: &str) -> Storage {
    // The log files are small, so that many kills come while the log begins a new one.
    let config = StorageConfig { log_chunk_bytes: 8_000, ..config(dir.as_ref()) };
    quorate::storage::open(config, &SystemRandom).unwrap()
}

/// What the writer has acknowledged so far.
#[derive(Debug, Default)]
struct Acknowledged {
    entries: u64,
    votes: u64,
}

/// Runs in the process that is killed. As a plain test it does nothing.
#[tokio::test]
async fn the_writer_that_is_killed() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let mut storage = open_there(dir.to_str().unwrap());
    let mut next = storage.log.last_log_id().map_or(0, |last| last.index + 1);
    let mut votes = storage.log.read_vote().await.unwrap().map_or(0, |vote| vote.leader_id.term);
    let say = |what: &str, number: u64| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "SAYS {what} {number}").unwrap();
        out.flush().unwrap();
    };
    for round in 1_u64.. {
        let count = 1 + round % 7;
        append(&mut storage.log, (next..next + count).map(|index| entry(RAFT_TERM, index))).await.unwrap();
        next += count;
        say("entries", next);
        let applied = log_id(RAFT_TERM, next - 1);
        let (rooms, meta) = state(next % 50, applied);
        if round % 3 == 0 {
            storage.state.replace_all(&rooms, &meta).unwrap();
        }
        if round % 20 == 0 {
            votes += 1;
            storage.log.save_vote(&Vote::new(votes, 1)).await.unwrap();
            say("votes", votes);
        }
        if round % 30 == 0 {
            // The entries that are truncated next are no longer acknowledged.
            say("entries", next - 2);
            storage.log.truncate_after(Some(log_id(RAFT_TERM, next - 3))).await.unwrap();
            next -= 2;
        } else if round % 50 == 0 {
            storage.log.save_committed(Some(applied)).await.unwrap();
            storage.state.replace_all(&rooms, &meta).unwrap();
            storage.state.durable_flush().unwrap();
            write_snapshot(&storage.snapshots, next % 50, applied);
            storage.log.purge(log_id(RAFT_TERM, next.saturating_sub(100))).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let mut acknowledged = Acknowledged::default();
    for kill in 0..KILLS {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "storage_kill::the_writer_that_is_killed", "--nocapture"])
            .env(DIR, dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(writer.stdout.take().unwrap());
        // The writer does not wait for its reader, so the kill comes at some moment after the last line that is read.
        let mut lines_left = 20 + kill * 31 % 150;
        for line in output.lines() {
            match line.unwrap().split(' ').collect::<Vec<_>>()[..] {
                [.., "SAYS", "entries", number] => acknowledged.entries = number.parse().unwrap(),
                [.., "SAYS", "votes", number] => acknowledged.votes = number.parse().unwrap(),
                _ => continue,
            }
            lines_left = lines_left.saturating_sub(1);
            if lines_left == 0 {
                writer.kill().unwrap();
            }
        }
        writer.wait().unwrap();

        let mut storage = open_there(dir);
        let end = storage.log.last_log_id().map_or(0, |last| last.index + 1);
        assert!(end >= acknowledged.entries, "{end}, {acknowledged:?}");
        let vote = storage.log.read_vote().await.unwrap().map_or(0, |vote| vote.leader_id.term);
        assert!(vote >= acknowledged.votes, "{vote}, {acknowledged:?}");
        for found in read_all(&mut storage.log).await {
            assert_eq!(found, entry(RAFT_TERM, found.log_id.index));
        }
        if let Some(applied) = storage.recovered.applied {
            let (rooms, _) = state((applied.index + 1) % 50, applied);
            assert_eq!(storage.recovered.rooms, rooms);
        }
    }
    assert!(acknowledged.entries > 100 && acknowledged.votes > 0, "{acknowledged:?}");
}
