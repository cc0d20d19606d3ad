//! The rules of the rooms. Each test's name is one rule.

use super::*;
use crate::domain::{ContenderId, LeaseDuration, Metadata, Nonce, WallTime};

const REIGN: u64 = 3;
const FLOOR: u64 = 1_000;
const ROOMY: Limits = Limits { live_leases_max: 100_000 };

fn stamp(at: u64) -> Stamp {
    Stamp { log_time: LogTime(at), raft_term: REIGN }
}

fn room(text: &str) -> RoomId {
    RoomId::new(text).unwrap()
}

fn secs(seconds: u64) -> LeaseDuration {
    LeaseDuration::from_secs(seconds).unwrap()
}

fn hash(secret: u8) -> SecretHash {
    SecretHash([secret; 32])
}

/// When a lease of `seconds` that was granted at `from` ends: the promise and its guard.
fn deadline(from: u64, seconds: u64) -> u64 {
    from + seconds * 1_000 + 10 + seconds
}

fn campaign(room_text: &str, secret: u8, seconds: u64) -> Campaign {
    Campaign {
        room: room(room_text),
        contender: ContenderId::new(&format!("contender-{secret}")).unwrap(),
        metadata: None,
        lease_duration: secs(seconds),
        secret_hash: hash(secret),
        nonce: Nonce([secret; 16]),
    }
}

fn renew(room_text: &str, secret: u8, seconds: Option<u64>) -> Renew {
    Renew { room: room(room_text), secret_hash: hash(secret), lease_duration: seconds.map(secs), metadata: None }
}

fn resign(room_text: &str, secret: u8) -> Resign {
    Resign { room: room(room_text), secret_hash: hash(secret) }
}

/// Runs commands in one reign, and keeps the tests to one line per command.
#[derive(Clone)]
struct Log(Rooms);

impl Log {
    /// A state in which rooms can be granted.
    fn ready() -> Log {
        let mut log = Log(Rooms::default());
        assert_eq!(log.floor(0, FLOOR), Outcome::Noted);
        log
    }

    fn apply(&mut self, command: &Command) -> Effect {
        self.0.apply(REIGN, command)
    }

    fn campaign(&mut self, at: u64, room: &str, secret: u8, seconds: u64) -> Outcome {
        let (campaign, live_leases_max) = (campaign(room, secret, seconds), ROOMY.live_leases_max);
        self.apply(&Command::Campaign { stamp: stamp(at), campaign, live_leases_max }).outcome
    }

    fn renew(&mut self, at: u64, room: &str, secret: u8, seconds: Option<u64>) -> Effect {
        self.apply(&Command::Renew { stamp: stamp(at), renew: renew(room, secret, seconds) })
    }

    fn resign(&mut self, at: u64, room: &str, secret: u8) -> Effect {
        self.apply(&Command::Resign { stamp: stamp(at), resign: resign(room, secret) })
    }

    fn tick(&mut self, at: u64) -> Effect {
        self.apply(&Command::Tick { stamp: stamp(at) })
    }

    fn floor(&mut self, at: u64, floor: u64) -> Outcome {
        self.apply(&Command::RaiseFencingFloor { stamp: stamp(at), floor: FencingToken(floor) }).outcome
    }

    fn anchor(&mut self, at: u64, wall_time: u64) -> Outcome {
        self.apply(&Command::AnchorWallClock { stamp: stamp(at), wall_time: WallTime(wall_time) }).outcome
    }

    fn lease(&self, room_text: &str) -> Lease {
        self.0.lease(&room(room_text)).expect("somebody holds the room").clone()
    }

    fn is_vacant(&self, room_text: &str) -> bool {
        self.0.lease(&room(room_text)).is_none()
    }

    fn judge(&self, at: u64, change: Change) -> Judgement {
        self.0.judge(&change, LogTime(at), ROOMY)
    }
}

fn kinds(effect: &Effect) -> Vec<RoomEventKind> {
    effect.events.iter().map(|event| event.kind).collect()
}

const NOT_HOLDER: Outcome = Outcome::Refused(Refusal::NotHolder);
const CAPACITY_REACHED: Outcome = Outcome::Refused(Refusal::CapacityReached);

#[test]
fn a_vacant_room_goes_to_the_first_contender() {
    let mut log = Log::ready();
    let granted = log.campaign(50, "room-one", 1, 5);
    let lease = log.lease("room-one");
    assert_eq!(lease.fencing_token, FencingToken(FLOOR + 1));
    assert_eq!((lease.promised_until, lease.deadline), (LogTime(5_050), LogTime(deadline(50, 5))));
    assert_eq!(granted, Outcome::Granted(log.0.view(&room("room-one"))));
}

#[test]
fn a_losing_campaign_gets_the_current_lease_and_changes_nothing() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let before = log.lease("room-one");
    let outcome = log.campaign(deadline(0, 5) - 1, "room-one", 2, 300);
    assert_eq!(log.lease("room-one"), before);
    assert!(matches!(outcome, Outcome::Occupied(view) if view.lease == Some(before)));
}

#[test]
fn a_holder_that_campaigns_again_gets_no_second_lease() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    assert!(matches!(log.campaign(10, "room-one", 1, 5), Outcome::Occupied(_)));
    assert_eq!(log.lease("room-one").promised_until, LogTime(5_000));
}

#[test]
fn a_room_with_a_due_lease_goes_to_the_next_contender_with_a_higher_token() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let command = Command::Campaign {
        stamp: stamp(deadline(0, 5)),
        campaign: campaign("room-one", 2, 5),
        live_leases_max: ROOMY.live_leases_max,
    };
    let effect = log.apply(&command);
    assert_eq!(kinds(&effect), [RoomEventKind::Expired, RoomEventKind::Granted]);
    assert_eq!(log.lease("room-one").fencing_token, FencingToken(FLOOR + 2));
    assert_eq!(log.lease("room-one").holder.as_str(), "contender-2");
}

#[test]
fn tokens_rise_across_rooms_and_after_a_room_was_vacant() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    log.campaign(0, "room-two", 1, 5);
    log.resign(1, "room-one", 1);
    log.campaign(2, "room-one", 1, 5);
    assert_eq!(log.lease("room-two").fencing_token, FencingToken(FLOOR + 2));
    assert_eq!(log.lease("room-one").fencing_token, FencingToken(FLOOR + 3));
}

#[test]
fn a_renewal_with_the_wrong_secret_is_refused_and_changes_no_lease() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let before = log.lease("room-one");
    let effect = log.renew(100, "room-one", 2, Some(300));
    assert_eq!(effect, Effect { outcome: NOT_HOLDER, events: Vec::new() });
    assert_eq!(log.lease("room-one"), before);
}

#[test]
fn a_renewal_keeps_the_token_and_counts_from_its_own_stamp() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    assert_eq!(kinds(&log.renew(2_000, "room-one", 1, None)), [RoomEventKind::Renewed]);
    let lease = log.lease("room-one");
    assert_eq!((lease.promised_until, lease.deadline), (LogTime(7_000), LogTime(deadline(2_000, 5))));
    assert_eq!(lease.fencing_token, FencingToken(FLOOR + 1));
}

#[test]
fn a_renewal_can_change_duration_and_metadata_and_otherwise_keeps_them() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let metadata = Some(Metadata::new("10.0.0.7:80").unwrap());
    let with_metadata = Renew { metadata: metadata.clone(), ..renew("room-one", 1, Some(60)) };
    log.apply(&Command::Renew { stamp: stamp(1), renew: with_metadata });
    log.renew(2, "room-one", 1, None);
    assert_eq!((log.lease("room-one").metadata, log.lease("room-one").lease_duration), (metadata, secs(60)));
}

#[test]
fn a_renewal_that_arrives_late_or_asks_for_less_never_moves_the_deadline_earlier() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 60);
    log.renew(10_000, "room-one", 1, None);
    let promised = log.lease("room-one");
    log.renew(4_000, "room-one", 1, None);
    assert_eq!(log.lease("room-one"), promised, "a delayed duplicate");
    log.renew(11_000, "room-one", 1, Some(5));
    let after = log.lease("room-one");
    assert_eq!((after.promised_until, after.deadline), (promised.promised_until, promised.deadline));
}

#[test]
fn a_renewal_at_the_deadline_is_refused_and_ends_the_lease_even_without_a_tick() {
    for late_by in [0, 1, 1_000_000] {
        let mut log = Log::ready();
        log.campaign(0, "room-one", 1, 5);
        let effect = log.renew(deadline(0, 5) + late_by, "room-one", 1, None);
        assert_eq!((kinds(&effect), effect.outcome), (vec![RoomEventKind::Expired], NOT_HOLDER));
        assert!(log.is_vacant("room-one"));
    }
}

#[test]
fn a_renewal_within_the_guard_is_still_in_time() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    assert!(matches!(log.renew(deadline(0, 5) - 1, "room-one", 1, None).outcome, Outcome::Renewed(_)));
}

#[test]
fn a_resignation_vacates_the_room_at_once_and_returns_its_token() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 300);
    let effect = log.resign(1, "room-one", 1);
    assert_eq!(
        (kinds(&effect), effect.outcome),
        (vec![RoomEventKind::Resigned], Outcome::Resigned(FencingToken(1_001)))
    );
    assert!(log.is_vacant("room-one"));
    assert!(matches!(log.campaign(1, "room-one", 2, 5), Outcome::Granted(_)));
}

#[test]
fn a_resignation_with_the_wrong_secret_is_refused() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 300);
    assert_eq!(log.resign(1, "room-one", 2).outcome, NOT_HOLDER);
    assert!(!log.is_vacant("room-one"));
}

#[test]
fn after_a_resignation_the_old_secret_is_refused() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 300);
    log.resign(1, "room-one", 1);
    assert_eq!(log.resign(2, "room-one", 1).outcome, NOT_HOLDER);
    assert_eq!(log.renew(2, "room-one", 1, None).outcome, NOT_HOLDER);
    log.campaign(3, "room-one", 2, 300);
    assert_eq!(log.renew(4, "room-one", 1, None).outcome, NOT_HOLDER, "the old secret is not the next lease's either");
}

#[test]
fn a_command_stamped_in_another_reign_changes_nothing_at_all() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let before = log.0.clone();
    for raft_term in [0, REIGN - 1, REIGN + 1, u64::MAX] {
        let stamp = Stamp { log_time: LogTime(1_000_000), raft_term };
        for command in [
            Command::Campaign { stamp, campaign: campaign("room-one", 2, 5), live_leases_max: 9 },
            Command::Campaign { stamp, campaign: campaign("room-two", 2, 5), live_leases_max: 9 },
            Command::Renew { stamp, renew: renew("room-one", 1, Some(300)) },
            Command::Resign { stamp, resign: resign("room-one", 1) },
            Command::Tick { stamp },
            Command::AnchorWallClock { stamp, wall_time: WallTime(5) },
            Command::RaiseFencingFloor { stamp, floor: FencingToken(1 << 40) },
        ] {
            let refused = Effect { outcome: Outcome::Refused(Refusal::StaleStamp), events: Vec::new() };
            assert_eq!(log.apply(&command), refused);
            assert_eq!(log.0, before, "log time included");
        }
    }
}

#[test]
fn log_time_never_goes_back() {
    let mut log = Log::ready();
    log.tick(500);
    log.tick(200);
    assert_eq!(log.0.log_time(), LogTime(500));
    log.campaign(300, "room-one", 1, 5);
    assert_eq!(log.lease("room-one").promised_until, LogTime(5_500), "a late stamp grants from log time on");
}

#[test]
fn a_tick_ends_due_leases_and_no_others() {
    let mut log = Log::ready();
    log.campaign(0, "room-two", 1, 5);
    log.campaign(0, "room-one", 1, 6);
    log.campaign(0, "room-six", 1, 7);
    assert_eq!(log.0.next_deadline(), Some(LogTime(deadline(0, 5))));
    let effect = log.tick(deadline(0, 6));
    let ended: Vec<_> = effect.events.iter().map(|event| event.room.as_str()).collect();
    assert_eq!(ended, ["room-two", "room-one"], "in the order of their deadlines");
    assert_eq!(effect.outcome, Outcome::Ticked { more_due: false });
    assert_eq!(log.0.next_deadline(), Some(LogTime(deadline(0, 7))));
}

#[test]
fn a_tick_ends_a_limited_number_of_leases_and_says_if_more_are_due() {
    let mut log = Log::ready();
    for number in 0..=EXPIRIES_PER_TICK_MAX {
        log.campaign(0, &format!("room-{number:08}"), 1, 5);
    }
    let mut exact = log.clone();
    let first = log.tick(deadline(0, 5));
    assert_eq!(first.events.len(), EXPIRIES_PER_TICK_MAX);
    assert_eq!(first.outcome, Outcome::Ticked { more_due: true });
    let second = log.tick(deadline(0, 5));
    assert_eq!((second.events.len(), second.outcome), (1, Outcome::Ticked { more_due: false }));

    exact.resign(1, "room-00000000", 1);
    let only = exact.tick(deadline(0, 5));
    assert_eq!(only.events.len(), EXPIRIES_PER_TICK_MAX);
    assert_eq!(only.outcome, Outcome::Ticked { more_due: false });
}

#[test]
fn no_more_leases_live_than_the_command_allows() {
    let mut log = Log::ready();
    let limited = |at, room, secret| Command::Campaign {
        stamp: stamp(at),
        campaign: campaign(room, secret, 5),
        live_leases_max: 2,
    };
    for room in ["room-one", "room-two"] {
        assert!(matches!(log.apply(&limited(0, room, 1)).outcome, Outcome::Granted(_)));
    }
    let full = log.apply(&limited(1, "room-six", 1));
    assert_eq!(full, Effect { outcome: CAPACITY_REACHED, events: Vec::new() });
    assert!(
        matches!(log.apply(&limited(1, "room-one", 2)).outcome, Outcome::Occupied(_)),
        "a campaign for an occupied room is not refused because of the limit"
    );
    let turned_over = log.apply(&limited(deadline(0, 5), "room-one", 2));
    assert!(matches!(turned_over.outcome, Outcome::Granted(_)), "the room's own due lease does not count");
}

#[test]
fn a_new_raft_term_grants_nothing_before_it_has_raised_the_fencing_floor() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let raft_term = REIGN + 1;
    let stamp = Stamp { log_time: LogTime(10), raft_term };
    let wanted = |name: &str| Command::Campaign {
        stamp,
        campaign: campaign(name, 2, 5),
        live_leases_max: ROOMY.live_leases_max,
    };
    let outcome = log.0.apply(raft_term, &wanted("room-two")).outcome;
    assert_eq!(outcome, Outcome::Refused(Refusal::NotReady));
    let outcome = log.0.apply(raft_term, &wanted("room-one")).outcome;
    assert!(matches!(outcome, Outcome::Occupied(_)), "an occupied room can be shown");

    let floor = Command::RaiseFencingFloor { stamp, floor: FencingToken(FLOOR + 50) };
    assert_eq!(log.0.apply(raft_term, &floor).outcome, Outcome::Noted);
    let outcome = log.0.apply(raft_term, &wanted("room-two")).outcome;
    assert!(matches!(outcome, Outcome::Granted(_)), "{outcome:?}");
    assert_eq!(log.lease("room-two").fencing_token, FencingToken(FLOOR + 51));
}

#[test]
fn nothing_is_granted_before_a_fencing_floor_is_set() {
    let mut log = Log(Rooms::default());
    assert_eq!(log.campaign(0, "room-one", 1, 5), Outcome::Refused(Refusal::NotReady));
    assert!(log.is_vacant("room-one"));
    log.floor(1, 7);
    log.campaign(2, "room-one", 1, 5);
    assert_eq!(log.lease("room-one").fencing_token, FencingToken(8));
}

#[test]
fn raising_the_fencing_floor_never_lowers_it() {
    let mut log = Log::ready();
    log.floor(1, FLOOR - 1);
    assert_eq!(log.0.counters().last_fencing_token, FLOOR);
    log.floor(1, FLOOR + 1);
    assert_eq!(log.0.counters().last_fencing_token, FLOOR + 1);
}

#[test]
fn tokens_end_at_what_javascript_can_read() {
    let mut log = Log::ready();
    log.floor(1, u64::MAX);
    assert_eq!(log.0.counters().last_fencing_token, (1 << 53) - 1);
    assert_eq!(log.campaign(2, "room-one", 1, 5), CAPACITY_REACHED);

    let mut last = Log::ready();
    last.floor(1, (1 << 53) - 2);
    last.campaign(2, "room-one", 1, 5);
    assert_eq!(last.lease("room-one").fencing_token, fencing_token_max());
    assert_eq!(last.campaign(2, "room-two", 1, 5), CAPACITY_REACHED);
}

#[test]
fn the_wall_anchor_shows_the_calendar_and_decides_nothing() {
    let (mut anchored, mut plain) = (Log::ready(), Log::ready());
    for log in [&mut anchored, &mut plain] {
        log.campaign(1_000, "room-one", 1, 5);
    }
    assert_eq!(anchored.0.view(&room("room-one")).expires_at(), None);
    for wall_time in [u64::MAX, 0, 1_700_000_000_000] {
        anchored.anchor(2_000, wall_time);
        plain.tick(2_000);
        assert_eq!(anchored.lease("room-one"), plain.lease("room-one"));
        assert_eq!(anchored.0.log_time(), plain.0.log_time());
    }
    let view = anchored.0.view(&room("room-one"));
    assert_eq!(view.expires_at(), Some(WallTime(1_700_000_004_000)), "4 s after the anchor, without the guard");
    let anchor = WallAnchor { log_time: LogTime(5_000), wall_time: WallTime(10_000) };
    assert_eq!(anchor.wall_time_of(LogTime(2_000)), WallTime(7_000), "moments before the anchor have a date too");
}

#[test]
fn all_nodes_show_the_same_date() {
    let (mut one, mut other) = (Log::ready(), Log::ready());
    for log in [&mut one, &mut other] {
        log.anchor(100, 1_700_000_000_000);
        log.campaign(200, "room-one", 1, 5);
    }
    assert_eq!(one.0.view(&room("room-one")), other.0.view(&room("room-one")));
    assert_eq!(one.0.view(&room("room-one")).expires_at(), Some(WallTime(1_700_000_005_100)));
}

#[test]
fn changes_without_effect_are_answered_without_a_log_entry() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let view = log.0.view_at(&room("room-one"), LogTime(100));
    assert_eq!(view.log_time, LogTime(100), "the view has the reading, so that the remaining time can be computed");
    for (change, outcome) in [
        (Change::Campaign(campaign("room-one", 2, 5)), Outcome::Occupied(view)),
        (Change::Renew(renew("room-one", 2, None)), NOT_HOLDER),
        (Change::Resign(resign("room-one", 2)), NOT_HOLDER),
        (Change::Renew(renew("room-two", 1, None)), NOT_HOLDER),
        (Change::Resign(resign("room-two", 1)), NOT_HOLDER),
    ] {
        assert_eq!(log.judge(100, change), Judgement::Answer(outcome));
    }
}

#[test]
fn vacant_rooms_due_leases_and_right_secrets_must_go_through_the_log() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let due = deadline(0, 5);
    for (at, campaign) in [(100, campaign("room-two", 2, 5)), (due, campaign("room-one", 2, 5))] {
        assert_eq!(log.judge(at, Change::Campaign(campaign)), Judgement::Propose);
    }
    for (at, secret) in [(100, 1), (due, 2)] {
        let (renew, resign) = (renew("room-one", secret, None), resign("room-one", secret));
        assert_eq!(log.judge(at, Change::Renew(renew)), Judgement::Propose);
        assert_eq!(log.judge(at, Change::Resign(resign)), Judgement::Propose);
    }
}

#[test]
fn a_due_lease_is_shown_until_the_log_has_ended_it() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let view = log.0.view_at(&room("room-one"), LogTime(deadline(0, 5) + 60_000));
    assert_eq!(view.lease.unwrap().valid_for(view.log_time), std::time::Duration::ZERO);
}

#[test]
fn a_reading_behind_the_log_is_judged_at_log_time() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    // A command about another room moves log time past the deadline, but does not end this lease.
    log.campaign(deadline(0, 5), "room-two", 1, 5);
    let judgement = log.judge(deadline(0, 5) - 1, Change::Campaign(campaign("room-one", 2, 5)));
    assert_eq!(judgement, Judgement::Propose);
}

#[test]
fn a_campaign_beyond_the_limit_of_live_leases_is_answered_without_a_log_entry() {
    let mut log = Log::ready();
    log.campaign(0, "room-one", 1, 5);
    let full = Limits { live_leases_max: 1 };
    let judge = |room: &str, at| log.0.judge(&Change::Campaign(campaign(room, 2, 5)), LogTime(at), full);
    assert_eq!(judge("room-two", 10), Judgement::Answer(CAPACITY_REACHED));
    assert!(matches!(judge("room-one", 10), Judgement::Answer(Outcome::Occupied(_))));
    assert_eq!(judge("room-one", deadline(0, 5)), Judgement::Propose);
}

#[test]
fn equal_states_have_equal_digests_whatever_their_history() {
    let (mut one, mut other) = (Log::ready(), Log(Rooms::default()));
    one.campaign(0, "room-one", 1, 5);
    one.campaign(0, "room-two", 2, 5);
    // Another way to tokens 1,001 and 1,002: a third room that came and went, and two floors.
    other.floor(0, FLOOR - 1);
    other.campaign(0, "room-six", 9, 300);
    other.resign(0, "room-six", 9);
    other.campaign(0, "room-one", 1, 5);
    other.campaign(0, "room-two", 2, 5);
    assert_eq!(one.0, other.0);
    assert_eq!(one.0.digest(), other.0.digest());
}

#[test]
fn every_difference_changes_the_digest() {
    let mut base = Log::ready();
    base.campaign(0, "room-one", 1, 5);
    base.campaign(0, "room-two", 2, 5);
    let counters = base.0.counters();
    let leases: Vec<_> = base.0.leases().map(|(room, lease)| (room.clone(), lease.clone())).collect();
    let mut digests = vec![base.0.digest()];
    let anchor = WallAnchor { log_time: LogTime(0), wall_time: WallTime(0) };
    for changed in [
        Counters { log_time: LogTime(1), ..counters },
        Counters { last_fencing_token: 9_999, ..counters },
        Counters { wall_anchor: Some(anchor), ..counters },
        Counters { floor_raft_term: 9, ..counters },
    ] {
        digests.push(Rooms::restore(changed, leases.clone()).digest());
    }
    let edits: [fn(&mut Lease); 8] = [
        |lease| lease.holder = ContenderId::new("other").unwrap(),
        |lease| lease.metadata = Some(Metadata::new("").unwrap()),
        |lease| lease.fencing_token.0 += 1,
        |lease| lease.lease_duration = secs(6),
        |lease| lease.promised_until.0 += 1,
        |lease| lease.deadline.0 += 1,
        |lease| lease.secret_hash.0[31] ^= 1,
        |lease| lease.nonce.0[0] ^= 1,
    ];
    for edit in edits {
        let mut edited = leases.clone();
        edit(&mut edited[0].1);
        digests.push(Rooms::restore(counters, edited).digest());
    }
    let mut swapped = leases.clone();
    let (first, rest) = swapped.split_at_mut(1);
    std::mem::swap(&mut first[0].0, &mut rest[0].0);
    digests.push(Rooms::restore(counters, swapped).digest());
    digests.push(Rooms::restore(counters, leases[..1].to_vec()).digest());
    for (index, digest) in digests.iter().enumerate() {
        assert!(!digests[..index].contains(digest), "digest {index} equals an earlier one");
    }
}

#[test]
fn restored_state_equals_the_stored_state_whatever_the_order_of_the_leases() {
    let mut log = Log::ready();
    for (at, name) in [(0, "room-one"), (700, "room-two"), (1_400, "room-six")] {
        log.campaign(at, name, 1, 5);
    }
    log.anchor(1_500, 1_700_000_000_000);
    let leases = log.0.leases().map(|(room, lease)| (room.clone(), lease.clone()));
    let backwards: Vec<_> = leases.collect::<Vec<_>>().into_iter().rev().collect();
    let restored = Rooms::restore(log.0.counters(), backwards);
    assert_eq!(restored, log.0);
    assert_eq!(restored.digest(), log.0.digest());
}
