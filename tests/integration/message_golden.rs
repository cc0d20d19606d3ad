//! The messages between nodes and the commands in the log keep their exact bytes, because nodes of two versions run
//! side by side during an upgrade.

use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse};
use quorate::codec;
use quorate::domain::{
    Change, Command, FencingToken, LeaseDuration, LogTime, Metadata, Operation, Outcome, Refusal, Renew, Resign,
    RoomView, SecretHash, Stamp, WallAnchor, WallTime,
};
use quorate::peer::{Decision, ForwardedOperation, PeerIdentity, SnapshotHead, Undecided};
use quorate::raft_types::{TypeConfig, Vote};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::storage_fixtures::{campaign, entry, lease, log_id, room, snapshot_meta};
use crate::storage_golden::same_as_golden;

/// Checks that a value is written as its golden bytes, and that these are read and written again without a change.
fn keeps_its_bytes<T: Serialize + DeserializeOwned>(name: &str, value: &T) {
    let golden = same_as_golden(name, &codec::encode(value).unwrap());
    let read: T = codec::decode(&golden).unwrap();
    assert!(codec::encode(&read).unwrap() == golden, "{name}");
}

fn renew_request() -> Renew {
    Renew {
        room: room(2),
        secret_hash: SecretHash([3; 32]),
        lease_duration: LeaseDuration::from_secs(60),
        metadata: Some(Metadata::new("http://worker:1").unwrap()),
    }
}

fn resign_request() -> Resign {
    Resign { room: room(3), secret_hash: SecretHash([4; 32]) }
}

fn view() -> RoomView {
    let wall_anchor = Some(WallAnchor { log_time: LogTime(5), wall_time: WallTime(1_796_063_093_001) });
    RoomView { lease: Some(lease(4)), log_time: LogTime(77), wall_anchor }
}

#[test]
fn commands_keep_their_bytes() {
    let stamp = Stamp { log_time: LogTime(123), raft_term: 4 };
    let commands = vec![
        Command::Campaign { stamp, campaign: campaign(1), live_leases_max: 9 },
        Command::Renew { stamp, renew: renew_request() },
        Command::Resign { stamp, resign: resign_request() },
        Command::Tick { stamp },
        Command::AnchorWallClock { stamp, wall_time: WallTime(1_796_063_093_001) },
        Command::RaiseFencingFloor { stamp, floor: FencingToken(1_796_063_093_001) },
    ];
    keeps_its_bytes("commands.bin", &commands);
}

#[test]
fn forwarded_operations_and_decisions_keep_their_bytes() {
    let changes = [Change::Campaign(campaign(1)), Change::Renew(renew_request()), Change::Resign(resign_request())];
    let operations = changes.into_iter().map(Operation::Change).chain([Operation::View(room(5))]);
    let forwarded = |operation| ForwardedOperation { operation, remaining_ms: 4_900 };
    keeps_its_bytes("forwarded_operations.bin", &operations.map(forwarded).collect::<Vec<_>>());
    let decisions: Vec<Decision> = vec![
        Ok(Outcome::Granted(view())),
        Ok(Outcome::Occupied(view())),
        Ok(Outcome::Renewed(view())),
        Ok(Outcome::Resigned(FencingToken(8))),
        Ok(Outcome::Viewed(RoomView { lease: None, ..view() })),
        Ok(Outcome::Ticked { more_due: true }),
        Ok(Outcome::Noted),
        Ok(Outcome::Refused(Refusal::NotHolder)),
        Ok(Outcome::Refused(Refusal::CapacityReached)),
        Ok(Outcome::Refused(Refusal::StaleStamp)),
        Ok(Outcome::Refused(Refusal::NotReady)),
        Err(Undecided::NothingProposed),
        Err(Undecided::OutcomeUnknown),
    ];
    keeps_its_bytes("decisions.bin", &decisions);
}

#[test]
fn a_peer_identity_keeps_its_bytes() {
    let identity = PeerIdentity {
        name: "n1".into(),
        node_id: 7,
        cluster_id: Some(uuid::Uuid::from_u128(7)),
        is_empty: true,
        expected_names: vec!["n1".into(), "n2".into()],
        client_url: "http://a:7400".into(),
        version: "0.1.0".into(),
    };
    keeps_its_bytes("peer_identity.bin", &identity);
}

#[test]
fn raft_messages_keep_their_bytes() {
    let append = AppendEntriesRequest::<TypeConfig> {
        vote: Vote::new_committed(3, 1),
        prev_log_id: Some(log_id(2, 6)),
        entries: vec![entry(3, 7), entry(3, 8)],
        leader_commit: Some(log_id(2, 5)),
    };
    keeps_its_bytes("append_entries.bin", &append);
    let answers = vec![
        AppendEntriesResponse::<TypeConfig>::Success,
        AppendEntriesResponse::PartialSuccess(Some(log_id(3, 7))),
        AppendEntriesResponse::Conflict,
        AppendEntriesResponse::HigherVote(Vote::new(4, 2)),
    ];
    keeps_its_bytes("append_entries_answers.bin", &answers);
    let vote = VoteRequest::<TypeConfig> {
        vote: Vote::new(4, 2),
        last_log_id: Some(log_id(3, 8)),
        leadership_transfer: false,
    };
    keeps_its_bytes("vote.bin", &vote);
    keeps_its_bytes("vote_answer.bin", &VoteResponse::<TypeConfig>::new(Vote::new(4, 2), Some(log_id(3, 8)), true));
    let transfer = TransferLeaderRequest::<TypeConfig>::new(Vote::new_committed(3, 1), 2, Some(log_id(3, 8)));
    keeps_its_bytes("transfer_leader.bin", &transfer);
    keeps_its_bytes(
        "snapshot_head.bin",
        &SnapshotHead { vote: Vote::new_committed(3, 1), meta: snapshot_meta(log_id(3, 8)) },
    );
}
