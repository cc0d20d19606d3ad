use super::*;
use crate::clock::SystemClock;
use crate::domain::{Campaign, ContenderId, FencingToken, LeaseDuration, Nonce, SecretHash};

#[test]
fn watchers_hear_of_a_snapshot_only_if_it_changes_their_room() {
    let room = |name: &str| RoomId::new(name).unwrap();
    let clock = SystemClock::start().unwrap();
    let replica = Replica::new(Rooms::default(), None, StoredMembership::default(), clock);
    let (_, mut vacant) = replica.watch(&room("stays-vacant"));
    let (_, mut occupied) = replica.watch(&room("is-occupied"));

    let campaign = Campaign {
        room: room("is-occupied"),
        contender: ContenderId::new("worker-a").unwrap(),
        metadata: None,
        lease_duration: LeaseDuration::from_secs(30).unwrap(),
        secret_hash: SecretHash([0; 32]),
        nonce: Nonce([0; 16]),
    };
    let lease = Lease::grant(&campaign, FencingToken(7), LogTime(1_000));
    let rooms = || Rooms::restore(Counters::default(), [(room("is-occupied"), lease.clone())]);
    replica.replace(rooms(), None, StoredMembership::default());
    assert_eq!(occupied.try_recv().unwrap().lease, Some(lease.clone()));
    assert!(vacant.try_recv().is_err());

    replica.replace(rooms(), None, StoredMembership::default());
    assert!(occupied.try_recv().is_err());
}

#[test]
fn unwatched_rooms_do_not_pile_up() {
    let clock = SystemClock::start().unwrap();
    let replica = Replica::new(Rooms::default(), None, StoredMembership::default(), clock);
    let room = |count: usize| RoomId::new(&format!("watched-{count}")).unwrap();
    let kept: Vec<_> = (0..10).map(|count| replica.watch(&room(count)).1).collect();
    for count in 0..10_000 {
        replica.watch(&room(count));
    }
    let state = replica.lock();
    assert!(state.watched.len() < 200, "{}", state.watched.len());
    assert!((0..kept.len()).all(|count| state.watched[&room(count)].receiver_count() == 1));
}
