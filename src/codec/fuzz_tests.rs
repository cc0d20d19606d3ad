//! Every decoder gets bytes that no encoder wrote. It must not panic, and must not take much more memory than the bytes
//! justify. If it reads a value, that value must be written as the same bytes again.
//!
//! Each decoder gets its golden bytes with every simple kind of damage, and then with random damage. Most damaged
//! frames get right checksums, because a wrong checksum would keep the damage from the decoder. `PROPTEST_CASES` sets
//! the number of random cases. `scripts/fuzz` runs all modules of this name for longer.

use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::*;
use crate::domain::{
    Change, Command, Counters, Lease, Limits, LogTime, Operation, Outcome, Resign, RoomId, Rooms, SecretHash, Stamp,
};
use crate::peer::{Decision, ForwardedOperation, PeerIdentity, SnapshotHead};
use crate::raft_types::{EntryPayload, TypeConfig};
use crate::storage::StateMeta;

/// The memory that a decoder may take in addition to a multiple of its input. serde allocates 1 MiB for a list before
/// it has read the first item, and there are lists in lists.
const MEMORY_BYTES_MAX: usize = 4 << 20;

/// Wrong lengths. Each is written over every 8 bytes, so it replaces every length in turn.
const LENGTHS: [u64; 5] = [u64::MAX, 1 << 60, 1 << 32, 1 << 24, 0];

/// The content of a golden file, which an earlier version wrote.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The payload of a frame.
pub(crate) fn payload_of(frame: &[u8]) -> &[u8] {
    &frame[HEAD_BYTES..frame.len() - 4]
}

/// An intact frame around any payload.
pub(crate) fn sealed(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![FORMAT];
    frame.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(payload).to_be_bytes());
    frame
}

/// Does work on this many bytes, and panics if the work takes far more memory than that.
pub(crate) fn bounded<T>(input_bytes: usize, work: impl FnOnce() -> T) -> T {
    let mut result = None;
    let taken = allocation_counter::measure(|| result = Some(work()));
    let limit = MEMORY_BYTES_MAX + 64 * input_bytes;
    assert!(taken.bytes_max <= limit as u64, "{} bytes of memory for {input_bytes}", taken.bytes_max);
    result.expect("the work was done")
}

/// Every simple kind of damage: each cut, each flipped bit, and a wrong length at each place where a length could be.
pub(crate) fn each_damage(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cuts = (0..bytes.len()).map(|end| bytes[..end].to_vec());
    let flips = (0..bytes.len() * 8).map(|bit| {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        damaged
    });
    let lengths = (0..bytes.len().saturating_sub(7)).flat_map(|at| {
        LENGTHS.map(|length| {
            let mut damaged = bytes.to_vec();
            damaged[at..at + 8].copy_from_slice(&length.to_le_bytes());
            damaged
        })
    });
    cuts.chain(flips).chain(lengths)
}

#[derive(Debug, Clone)]
enum Edit {
    Set(Index, u8),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Copy(Index, Index, usize),
    Length(Index, u64),
}

impl Edit {
    fn make(&self, bytes: &mut Vec<u8>) {
        // One place more than there are bytes, so that an edit can append.
        let places = bytes.len() + 1;
        let at = |index: &Index| index.index(places);
        match self {
            Edit::Set(index, byte) => bytes.iter_mut().skip(at(index)).take(1).for_each(|found| *found = *byte),
            Edit::Flip(index, bit) => bytes.iter_mut().skip(at(index)).take(1).for_each(|found| *found ^= 1 << bit),
            Edit::Insert(index, new) => {
                let at = at(index);
                bytes.splice(at..at, new.iter().copied());
            }
            Edit::Remove(index, count) => {
                let at = at(index);
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Edit::Copy(from, to, count) => {
                let (from, to) = (at(from), at(to));
                let piece = bytes[from..(from + count).min(bytes.len())].to_vec();
                bytes.splice(to..to, piece);
            }
            Edit::Length(index, length) => {
                let at = at(index);
                for (found, byte) in bytes.iter_mut().skip(at).zip(length.to_le_bytes()) {
                    *found = byte;
                }
            }
        }
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let length = prop_oneof![prop::sample::select(LENGTHS.to_vec()), 0..300_u64, any::<u64>()];
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, new)| Edit::Insert(at, new)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, count)| Edit::Remove(at, count)),
        (any::<Index>(), any::<Index>(), 1..80_usize).prop_map(|(from, to, count)| Edit::Copy(from, to, count)),
        (any::<Index>(), length).prop_map(|(at, length)| Edit::Length(at, length)),
    ]
}

/// Mostly one of these seeds with a few edits, sometimes random bytes.
pub(crate) fn mutated(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let like_a_seed = (prop::sample::select(seeds), prop::collection::vec(edit(), 0..8)).prop_map(|(seed, edits)| {
        let mut bytes = seed;
        edits.iter().for_each(|edit| edit.make(&mut bytes));
        bytes
    });
    prop_oneof![9 => like_a_seed, 1 => prop::collection::vec(any::<u8>(), 0..300)]
}

/// Runs a check on the seeds with every simple kind of damage, and then on random edits of them.
pub(crate) fn try_on(seeds: Vec<Vec<u8>>, check: impl Fn(&[u8])) {
    seeds.iter().for_each(|seed| each_damage(seed).for_each(|bytes| check(&bytes)));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let tried = runner.run(&mutated(seeds), |bytes| {
        check(&bytes);
        Ok::<_, TestCaseError>(())
    });
    tried.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Whether each value of a type can be written in only one way. A membership contains sets. Their items are read in any
/// order, and written in sorted order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    InOneWay,
    InSomeOrder,
}

/// Reads the value in a payload, if there is one, and checks that it is written as the same bytes again.
pub(crate) fn value_in<T: Serialize + DeserializeOwned>(payload: &[u8], written: Written) -> Option<T> {
    let frame = sealed(payload);
    let value: T = bounded(frame.len(), || decode(&frame).ok())?;
    let again = encode(&value).expect("what was read can be written");
    if written == Written::InOneWay {
        assert!(again == frame, "{frame:?} is written as {again:?}");
    }
    let twice = encode(&decode::<T>(&again).expect("what was written can be read")).expect("and written again");
    assert!(again == twice, "{again:?} is written as {twice:?}");
    Some(value)
}

/// Runs a decoder on damaged payloads with right checksums, and on damaged frames whose checksums may be wrong.
pub(crate) fn try_decoder<T: Serialize + DeserializeOwned>(name: &str, written: Written, check: impl Fn(T)) {
    let frame = golden(name);
    let payload = payload_of(&frame).to_vec();
    assert!(value_in::<T>(&payload, written).is_some(), "{name} is read when it isn't damaged");
    try_on(vec![payload], |payload| {
        if let Some(value) = value_in(payload, written) {
            check(value);
        }
    });
    try_on(vec![frame], |frame| {
        let _ = bounded(frame.len(), || decode::<T>(frame).map(drop));
        let _ = bounded(frame.len(), || read_from::<T>(frame).map(drop));
    });
}

/// Checks that the rules work on any leases and counters that were read.
pub(crate) fn rules_go_on(counters: Counters, leases: Vec<(RoomId, Lease)>) {
    let mut rooms = Rooms::restore(counters, leases);
    let limits = Limits { live_leases_max: 10 };
    for room in rooms.leases().map(|(room, _)| room.clone()).collect::<Vec<_>>() {
        for reading in [0, counters.log_time.0, u64::MAX] {
            let change = Change::Resign(Resign { room: room.clone(), secret_hash: SecretHash([0; 32]) });
            rooms.judge(&change, LogTime(reading), limits);
            rooms.view_at(&room, LogTime(reading));
        }
    }
    let stamp = Stamp { log_time: LogTime(u64::MAX), raft_term: 1 };
    rooms.apply(1, &Command::Tick { stamp });
    assert_eq!(rooms.leases().len(), 0, "a lease is left at the end of log time");
}

#[test]
fn damaged_commands_are_rejected_or_can_be_applied() {
    try_decoder("commands.bin", Written::InOneWay, |commands: Vec<Command>| {
        let mut rooms = Rooms::default();
        for command in &commands {
            rooms.apply(command.stamp().raft_term, command);
        }
        let leases: Vec<_> = rooms.leases().map(|(room, lease)| (room.clone(), lease.clone())).collect();
        let restored = Rooms::restore(rooms.counters(), leases);
        assert_eq!(restored.digest(), rooms.digest());
    });
}

#[test]
fn damaged_entries_are_rejected_or_read() {
    try_decoder("log_payload.bin", Written::InOneWay, |_: EntryPayload| ());
    try_decoder("log_membership.bin", Written::InSomeOrder, |_: EntryPayload| ());
}

#[test]
fn damaged_leases_and_counters_are_rejected_or_work_with_the_rules() {
    let room = RoomId::new("nightly-report").unwrap();
    try_decoder("lease.bin", Written::InOneWay, |lease: Lease| {
        rules_go_on(Counters::default(), vec![(room.clone(), lease)]);
    });
    try_decoder("state_meta.bin", Written::InSomeOrder, |meta: StateMeta| rules_go_on(meta.counters, Vec::new()));
}

#[test]
fn damaged_operations_and_decisions_are_rejected_or_read() {
    try_decoder("forwarded_operations.bin", Written::InOneWay, |operations: Vec<ForwardedOperation>| {
        for forwarded in operations {
            match forwarded.operation {
                Operation::Change(change) => {
                    drop(Rooms::default().judge(&change, LogTime(1), Limits { live_leases_max: 10 }))
                }
                Operation::View(room) => drop(Rooms::default().view_at(&room, LogTime(1))),
            }
        }
    });
    try_decoder("decisions.bin", Written::InOneWay, |decisions: Vec<Decision>| {
        for view in decisions.iter().filter_map(|decision| match decision {
            Ok(Outcome::Granted(view) | Outcome::Occupied(view) | Outcome::Viewed(view)) => Some(view),
            _ => None,
        }) {
            view.expires_at();
        }
    });
}

#[test]
fn damaged_peer_identities_are_rejected_or_read() {
    try_decoder("peer_identity.bin", Written::InOneWay, |_: PeerIdentity| ());
}

#[test]
fn damaged_raft_messages_are_rejected_or_read() {
    try_decoder("append_entries.bin", Written::InSomeOrder, |_: AppendEntriesRequest<TypeConfig>| ());
    try_decoder("append_entries_answers.bin", Written::InOneWay, |_: Vec<AppendEntriesResponse<TypeConfig>>| ());
    try_decoder("vote.bin", Written::InOneWay, |_: VoteRequest<TypeConfig>| ());
    try_decoder("vote_answer.bin", Written::InOneWay, |_: VoteResponse<TypeConfig>| ());
    try_decoder("transfer_leader.bin", Written::InOneWay, |_: TransferLeaderRequest<TypeConfig>| ());
    try_decoder("snapshot_head.bin", Written::InSomeOrder, |_: SnapshotHead| ());
}

/// Shows that the memory check notices a bad decoder.
#[test]
#[should_panic(expected = "bytes of memory for 8")]
fn a_decoder_that_allocates_the_claimed_length_is_caught() {
    bounded(8, || drop(std::hint::black_box(Vec::<u8>::with_capacity(1 << 30))));
}

/// Shows that the check of the bytes notices a bad decoder. This one reads every byte but 0 as true, so there are many
/// ways to write one value.
#[test]
#[should_panic(expected = "is written as")]
fn a_decoder_that_reads_many_bytes_as_one_value_is_caught() {
    struct Careless(bool);
    impl Serialize for Careless {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u8(self.0.into())
        }
    }
    impl<'de> serde::Deserialize<'de> for Careless {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Ok(Careless(u8::deserialize(deserializer)? != 0))
        }
    }
    value_in::<Careless>(&[2], Written::InOneWay);
}
