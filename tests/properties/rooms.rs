//! The rules of the rooms, on random sequences of commands.
//!
//! A sequence is planned in words, for example "renew room 1 with its secret, 1 ms before its deadline". Each plan
//! becomes a command that fits the state at that point, so the interesting moments come often. In a second kind of
//! sequence every number is arbitrary, over its whole range.

mod plan;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use quorate::codec;
use quorate::domain::{
    Change, Command, Effect, FencingToken, Judgement, Lease, Limits, LogTime, Outcome, Refusal, RoomEventKind, RoomId,
    Rooms, Stamp,
};

use plan::{Planned, REIGN, ROOMS, any_command, extreme, plans, room};

/// One command, its effect, and the state before and after it.
struct Step {
    command: Command,
    before: Rooms,
    effect: Effect,
    after: Rooms,
}

/// Applies the planned commands one by one.
fn run(plans: &[Planned]) -> Vec<Step> {
    let mut rooms = Rooms::default();
    let first_floor = Command::RaiseFencingFloor { stamp: stamp(0), floor: FencingToken(1) };
    rooms.apply(REIGN, &first_floor);
    let (mut steps, mut commands) = (Vec::new(), Vec::new());
    for planned in plans {
        let command = planned.command(&rooms, &commands);
        commands.push(command.clone());
        let before = rooms.clone();
        let effect = rooms.apply(REIGN, &command);
        steps.push(Step { command, before, effect, after: rooms.clone() });
    }
    steps
}

fn stamp(at: u64) -> Stamp {
    Stamp { log_time: LogTime(at), raft_term: REIGN }
}

fn room_of(command: &Command) -> Option<&RoomId> {
    match command {
        Command::Campaign { campaign, .. } => Some(&campaign.room),
        Command::Renew { renew, .. } => Some(&renew.room),
        Command::Resign { resign, .. } => Some(&resign.room),
        Command::Tick { .. } | Command::AnchorWallClock { .. } | Command::RaiseFencingFloor { .. } => None,
    }
}

fn change_of(command: &Command) -> Option<(Change, Limits)> {
    let no_limit = Limits { live_leases_max: u64::MAX };
    match command {
        Command::Campaign { campaign, live_leases_max, .. } => {
            Some((Change::Campaign(campaign.clone()), Limits { live_leases_max: *live_leases_max }))
        }
        Command::Renew { renew, .. } => Some((Change::Renew(renew.clone()), no_limit)),
        Command::Resign { resign, .. } => Some((Change::Resign(resign.clone()), no_limit)),
        _ => None,
    }
}

fn leases_of(rooms: &Rooms) -> Vec<(RoomId, Lease)> {
    rooms.leases().map(|(room, lease)| (room.clone(), lease.clone())).collect()
}

fn restamped(command: &Command, new: Stamp) -> Command {
    let mut command = command.clone();
    match &mut command {
        Command::Campaign { stamp, .. }
        | Command::Renew { stamp, .. }
        | Command::Resign { stamp, .. }
        | Command::Tick { stamp }
        | Command::AnchorWallClock { stamp, .. }
        | Command::RaiseFencingFloor { stamp, .. } => *stamp = new,
    }
    command
}

/// Checks what must be true of every command.
fn check(step: &Step) -> Result<(), TestCaseError> {
    let Step { command, before, effect, after } = step;
    if command.stamp().raft_term != REIGN {
        prop_assert_eq!(before, after, "a stamp of another reign changes nothing");
        prop_assert_eq!(&effect.outcome, &Outcome::Refused(Refusal::StaleStamp));
        prop_assert!(effect.events.is_empty());
        return Ok(());
    }
    prop_assert_eq!(after.log_time(), before.log_time().max(command.stamp().log_time));
    prop_assert!(before.counters().last_fencing_token <= after.counters().last_fencing_token);

    let mut rooms: Vec<_> = before.leases().chain(after.leases()).map(|(room, _)| room.clone()).collect();
    rooms.sort();
    rooms.dedup();
    for room in &rooms {
        check_room(step, room)?;
    }

    let mut tokens: Vec<_> = after.leases().map(|(_, lease)| lease.fencing_token.0).collect();
    tokens.sort_unstable();
    prop_assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "no two leases share a token");
    prop_assert!(tokens.iter().all(|token| *token <= after.counters().last_fencing_token));
    let first_deadline = after.leases().map(|(_, lease)| lease.deadline).min();
    prop_assert_eq!(after.next_deadline(), first_deadline, "the index of deadlines is right");
    if let (Command::Campaign { live_leases_max, .. }, Outcome::Granted(_)) = (command, &effect.outcome) {
        prop_assert!(after.leases().len() as u64 <= *live_leases_max);
    }
    Ok(())
}

/// Checks what must be true of every command for this one room.
fn check_room(step: &Step, room: &RoomId) -> Result<(), TestCaseError> {
    let Step { command, before, effect, after } = step;
    let kinds: Vec<_> = effect.events.iter().filter(|event| event.room == *room).map(|event| event.kind).collect();
    let is_concerned = room_of(command).is_none_or(|concerned| concerned == room);
    let (old, new) = (before.lease(room), after.lease(room));
    match (old, new) {
        _ if !is_concerned => {
            prop_assert_eq!(old, new, "a command about another room leaves this one alone");
            prop_assert!(kinds.is_empty());
        }
        (None, None) => prop_assert!(kinds.is_empty()),
        (Some(old), None) if old.is_due(after.log_time()) => prop_assert_eq!(&kinds, &[RoomEventKind::Expired]),
        (Some(old), None) => {
            let Command::Resign { resign, .. } = command else {
                return Err(TestCaseError::fail("only a resignation vacates a room before its deadline"));
            };
            prop_assert!(resign.secret_hash.matches(&old.secret_hash));
            prop_assert_eq!(&effect.outcome, &Outcome::Resigned(old.fencing_token));
            prop_assert_eq!(&kinds, &[RoomEventKind::Resigned]);
        }
        (Some(old), Some(new)) if old.fencing_token == new.fencing_token => {
            prop_assert!(old.deadline <= new.deadline && old.promised_until <= new.promised_until);
            let identity = |lease: &Lease| (lease.holder.clone(), lease.secret_hash, lease.nonce);
            prop_assert_eq!(identity(old), identity(new), "a renewal keeps the holder");
            if kinds.is_empty() {
                prop_assert_eq!(old, new);
            } else {
                prop_assert_eq!(&kinds, &[RoomEventKind::Renewed]);
                prop_assert!(!old.is_due(after.log_time()), "a lease can be renewed only before its deadline");
                let right =
                    matches!(command, Command::Renew { renew, .. } if renew.secret_hash.matches(&old.secret_hash));
                prop_assert!(right, "only a renewal with the secret changes a lease");
            }
        }
        (old, Some(new)) => {
            prop_assert!(
                old.is_none_or(|old| old.is_due(after.log_time())),
                "a room has one holder until the deadline"
            );
            let is_campaign = matches!(command, Command::Campaign { .. });
            prop_assert!(is_campaign, "only a campaign grants a room");
            prop_assert!(
                new.fencing_token.0 > before.counters().last_fencing_token,
                "a token is higher than that of every earlier grant"
            );
            prop_assert_eq!(new.fencing_token.0, after.counters().last_fencing_token);
            let expired = old.map(|_| RoomEventKind::Expired);
            prop_assert_eq!(kinds, expired.into_iter().chain([RoomEventKind::Granted]).collect::<Vec<_>>());
            prop_assert!(new.promised_until <= new.deadline);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_planned_sequence_of_commands_keeps_the_promises(plans in plans()) {
        for step in run(&plans) {
            check(&step)?;
        }
    }

    #[test]
    fn any_numbers_in_commands_keep_the_promises_without_a_panic(commands in vec(any_command(), 1..40)) {
        let mut rooms = Rooms::default();
        for command in commands {
            let before = rooms.clone();
            let effect = rooms.apply(REIGN, &command);
            for number in 0..ROOMS.len() {
                let view = rooms.view(&room(number));
                let _ = (view.expires_at(), view.lease.map(|lease| (lease.valid_for(view.log_time), lease.retry_after(view.log_time))));
            }
            check(&Step { command, before, effect, after: rooms.clone() })?;
        }
    }

    #[test]
    fn fencing_tokens_rise_with_every_grant(plans in plans()) {
        let granted = |step: &Step| match &step.effect.outcome {
            Outcome::Granted(view) => view.lease.as_ref().map(|lease| lease.fencing_token),
            _ => None,
        };
        let tokens: Vec<_> = run(&plans).iter().filter_map(granted).collect();
        prop_assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn judge_gives_the_same_answer_as_apply(plans in plans(), readings in vec(extreme(), 50)) {
        for (step, far) in run(&plans).iter().zip(readings) {
            let Some((change, limits)) = change_of(&step.command) else { continue };
            for reading in [step.command.stamp().log_time, LogTime(far)] {
                let mut rooms = step.before.clone();
                let judgement = rooms.judge(&change, reading, limits);
                let effect = rooms.apply(REIGN, &restamped(&step.command, stamp(reading.0)));
                if let Judgement::Answer(answer) = &judgement {
                    prop_assert_eq!(answer, &effect.outcome);
                    prop_assert!(effect.events.is_empty());
                    prop_assert_eq!(leases_of(&rooms), leases_of(&step.before));
                }
                if !effect.events.is_empty() {
                    prop_assert_eq!(judgement, Judgement::Propose);
                    let proposed = Command::stamped(change.clone(), step.command.stamp(), limits.live_leases_max);
                    prop_assert_eq!(proposed, step.command.clone());
                }
            }
        }
    }

    #[test]
    fn a_view_shows_the_lease_at_its_reading(plans in plans(), reading in extreme()) {
        for step in run(&plans) {
            for room in (0..ROOMS.len()).map(room) {
                let view = step.after.view_at(&room, LogTime(reading));
                prop_assert_eq!(view.lease.as_ref(), step.after.lease(&room));
                prop_assert_eq!(view.log_time, step.after.log_time().max(LogTime(reading)));
            }
        }
    }

    #[test]
    fn a_snapshot_at_any_point_and_the_rest_of_the_log_give_the_same_state(plans in plans(), cut in any::<Index>(), order in any::<u64>()) {
        let steps = run(&plans);
        let cut = cut.index(steps.len());
        let mut leases = leases_of(&steps[cut].after);
        if !leases.is_empty() {
            let by = order as usize % leases.len();
            leases.rotate_left(by);
        }
        let mut restored = Rooms::restore(steps[cut].after.counters(), leases);
        prop_assert_eq!(&restored, &steps[cut].after);
        for step in &steps[cut + 1..] {
            prop_assert_eq!(&restored.apply(REIGN, &step.command), &step.effect);
        }
        let whole = &steps[steps.len() - 1].after;
        prop_assert_eq!(&restored, whole);
        prop_assert_eq!(restored.digest(), whole.digest());
        let bytes = |rooms: &Rooms| codec::encode(&(rooms.counters(), leases_of(rooms))).unwrap();
        prop_assert_eq!(bytes(&restored), bytes(whole));
    }

    #[test]
    fn two_digests_are_equal_exactly_if_the_states_are(plans in plans(), others in plans()) {
        let states: Vec<_> = run(&plans).into_iter().chain(run(&others)).map(|step| step.after).collect();
        let digests: Vec<_> = states.iter().map(Rooms::digest).collect();
        for (index, state) in states.iter().enumerate() {
            for earlier in 0..index {
                prop_assert_eq!(*state == states[earlier], digests[index] == digests[earlier]);
            }
        }
    }

    #[test]
    fn commands_and_outcomes_survive_the_codec(commands in vec(any_command(), 1..20)) {
        let mut rooms = Rooms::default();
        for command in commands {
            prop_assert_eq!(&codec::decode::<Command>(&codec::encode(&command).unwrap()).unwrap(), &command);
            let outcome = rooms.apply(REIGN, &command).outcome;
            prop_assert_eq!(&codec::decode::<Outcome>(&codec::encode(&outcome).unwrap()).unwrap(), &outcome);
        }
    }
}

/// The promises are tested only if the sequences reach the events that the promises are about.
#[test]
fn the_planned_sequences_reach_every_kind_of_outcome_and_event() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for _ in 0..200 {
        for step in run(&plans().new_tree(&mut runner).unwrap().current()) {
            let outcome = format!("{:?}", step.effect.outcome);
            let outcome = match &step.effect.outcome {
                Outcome::Refused(_) => outcome.as_str(),
                _ => outcome.split(['(', ' ']).next().unwrap(),
            };
            *seen.entry(outcome.to_owned()).or_default() += 1;
            for event in &step.effect.events {
                *seen.entry(format!("{:?} (event)", event.kind)).or_default() += 1;
            }
        }
    }
    println!("{seen:?}");
    for kind in [
        "Granted",
        "Occupied",
        "Renewed",
        "Resigned",
        "Ticked",
        "Noted",
        "Refused(NotHolder)",
        "Refused(CapacityReached)",
        "Refused(StaleStamp)",
        "Expired (event)",
    ] {
        assert!(seen.get(kind).is_some_and(|count| *count >= 20), "{kind} is too rare: {seen:?}");
    }
}
