//! Random commands: planned commands, which reach the interesting moments often, and arbitrary commands.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use quorate::domain::{
    Campaign, Command, ContenderId, FencingToken, LeaseDuration, LogTime, Metadata, Nonce, Renew, Resign, RoomId,
    Rooms, SecretHash, Stamp, WallTime,
};

/// The raft term of all entries. A stamp with any other raft term is stale.
pub const REIGN: u64 = 7;

pub const ROOMS: [&str; 3] = ["room-one", "room-two", "room-six"];

/// A command in words.
#[derive(Debug, Clone)]
pub enum Plan {
    Campaign {
        room: usize,
        contender: u8,
        seconds: u64,
        live_leases_max: u64,
    },
    Renew {
        room: usize,
        secret: Secret,
        seconds: Option<u64>,
    },
    Resign {
        room: usize,
        secret: Secret,
    },
    Tick,
    Anchor(u64),
    Floor(u64),
    /// Repeats an earlier command of the sequence, with its old stamp.
    Again(Index),
}

#[derive(Debug, Clone)]
pub enum Secret {
    /// The secret of the current lease.
    Current,
    /// The secret of some campaign of the sequence, whether it won or not.
    Of(u8),
}

/// The stamp of the raft leader, relative to the state.
#[derive(Debug, Clone)]
pub enum When {
    /// This much after log time.
    After(u64),
    /// This much before log time: a later stamp was applied first.
    Before(u64),
    /// At the deadline of a room, 1 ms before it, or 1 ms after it.
    AroundDeadline(usize, i8),
    /// At any log time.
    At(u64),
}

#[derive(Debug, Clone)]
pub struct Planned {
    plan: Plan,
    when: When,
    raft_term: u64,
}

fn planned() -> impl Strategy<Value = Planned> {
    let room = || 0..ROOMS.len();
    let seconds = || select(vec![5_u64, 6, 300]);
    let secret = || prop_oneof![3 => Just(Secret::Current), 1 => any::<u8>().prop_map(Secret::Of)];
    let maximum = prop_oneof![3 => Just(100_u64), 1 => 0..4_u64];
    let campaign = (room(), 0..4_u8, seconds(), maximum).prop_map(|(room, contender, seconds, live_leases_max)| {
        Plan::Campaign { room, contender, seconds, live_leases_max }
    });
    let renew = (room(), secret(), proptest::option::of(seconds())).prop_map(|(room, secret, seconds)| Plan::Renew {
        room,
        secret,
        seconds,
    });
    let plan = prop_oneof![
        6 => campaign,
        4 => renew,
        2 => (room(), secret()).prop_map(|(room, secret)| Plan::Resign { room, secret }),
        2 => Just(Plan::Tick),
        1 => any::<u64>().prop_map(Plan::Anchor),
        1 => prop_oneof![4 => 0..50_u64, 1 => any::<u64>()].prop_map(Plan::Floor),
        2 => any::<Index>().prop_map(Plan::Again),
    ];
    let when = prop_oneof![
        60 => (0..3_000_u64).prop_map(When::After),
        10 => (0..3_000_u64).prop_map(When::Before),
        30 => (room(), -1..=1_i8).prop_map(|(room, off)| When::AroundDeadline(room, off)),
        1 => any::<u64>().prop_map(When::At),
    ];
    let raft_term = prop_oneof![9 => Just(REIGN), 1 => prop_oneof![0..10_u64, any::<u64>()]];
    (plan, when, raft_term).prop_map(|(plan, when, raft_term)| Planned { plan, when, raft_term })
}

pub fn plans() -> impl Strategy<Value = Vec<Planned>> {
    vec(planned(), 1..50)
}

pub fn room(number: usize) -> RoomId {
    RoomId::new(ROOMS[number]).unwrap()
}

fn hash(serial: u8) -> SecretHash {
    SecretHash([serial; 32])
}

impl Planned {
    /// The planned command. `earlier` has the commands of the sequence so far. Each campaign has its own secret.
    pub fn command(&self, rooms: &Rooms, earlier: &[Command]) -> Command {
        let now = rooms.log_time().0;
        let log_time = LogTime(match self.when {
            When::After(by) => now.saturating_add(by),
            When::Before(by) => now.saturating_sub(by),
            When::AroundDeadline(number, off) => {
                let deadline = rooms.lease(&room(number)).map_or(now, |lease| lease.deadline.0);
                deadline.saturating_add_signed(off.into())
            }
            When::At(moment) => moment,
        });
        let stamp = Stamp { log_time, raft_term: self.raft_term };
        let secret_hash = |number: usize, secret: &Secret| match (secret, rooms.lease(&room(number))) {
            (Secret::Current, Some(lease)) => lease.secret_hash,
            (Secret::Current, None) => hash(255),
            (Secret::Of(serial), _) => hash(*serial % 50),
        };
        match &self.plan {
            Plan::Campaign { room: number, contender, seconds, live_leases_max } => {
                let serial = u8::try_from(earlier.len()).unwrap();
                let campaign = Campaign {
                    room: room(*number),
                    contender: ContenderId::new(&format!("contender-{contender}")).unwrap(),
                    metadata: None,
                    lease_duration: LeaseDuration::from_secs(*seconds).unwrap(),
                    secret_hash: hash(serial),
                    nonce: Nonce([serial; 16]),
                };
                Command::Campaign { stamp, campaign, live_leases_max: *live_leases_max }
            }
            Plan::Renew { room: number, secret, seconds } => {
                let lease_duration = seconds.map(|seconds| LeaseDuration::from_secs(seconds).unwrap());
                let secret_hash = secret_hash(*number, secret);
                Command::Renew {
                    stamp,
                    renew: Renew { room: room(*number), secret_hash, lease_duration, metadata: None },
                }
            }
            Plan::Resign { room: number, secret } => {
                let secret_hash = secret_hash(*number, secret);
                Command::Resign { stamp, resign: Resign { room: room(*number), secret_hash } }
            }
            Plan::Tick => Command::Tick { stamp },
            Plan::Anchor(wall_time) => Command::AnchorWallClock { stamp, wall_time: WallTime(*wall_time) },
            Plan::Floor(floor) => Command::RaiseFencingFloor { stamp, floor: FencingToken(*floor) },
            Plan::Again(_) if earlier.is_empty() => Command::Tick { stamp },
            Plan::Again(index) => earlier[index.index(earlier.len())].clone(),
        }
    }
}

/// Any command with arbitrary numbers. There are few rooms, so that commands concern the same ones.
pub fn any_command() -> impl Strategy<Value = Command> {
    let stamp = || {
        let raft_term = prop_oneof![3 => Just(REIGN), 1 => any::<u64>()];
        (extreme(), raft_term).prop_map(|(at, raft_term)| Stamp { log_time: LogTime(at), raft_term })
    };
    let duration = || (5..=300_u64).prop_map(|seconds| LeaseDuration::from_secs(seconds).unwrap());
    let metadata = || proptest::option::of("\\PC{0,40}".prop_map(|text| Metadata::new(&text).unwrap()));
    let room = || (0..ROOMS.len()).prop_map(room);
    let secret = || (0..3_u8).prop_map(hash);
    let campaign = (room(), "[A-Za-z0-9._:@-]{1,64}", metadata(), duration(), secret(), any::<[u8; 16]>()).prop_map(
        |(room, name, metadata, lease_duration, secret_hash, nonce)| Campaign {
            room,
            contender: ContenderId::new(&name).unwrap(),
            metadata,
            lease_duration,
            secret_hash,
            nonce: Nonce(nonce),
        },
    );
    let renew = (room(), secret(), proptest::option::of(duration()), metadata()).prop_map(
        |(room, secret_hash, lease_duration, metadata)| Renew { room, secret_hash, lease_duration, metadata },
    );
    let resign = (room(), secret()).prop_map(|(room, secret_hash)| Resign { room, secret_hash });
    prop_oneof![
        (stamp(), campaign, extreme()).prop_map(|(stamp, campaign, live_leases_max)| Command::Campaign {
            stamp,
            campaign,
            live_leases_max
        }),
        (stamp(), renew).prop_map(|(stamp, renew)| Command::Renew { stamp, renew }),
        (stamp(), resign).prop_map(|(stamp, resign)| Command::Resign { stamp, resign }),
        stamp().prop_map(|stamp| Command::Tick { stamp }),
        (stamp(), extreme()).prop_map(|(stamp, wall)| Command::AnchorWallClock { stamp, wall_time: WallTime(wall) }),
        (stamp(), extreme())
            .prop_map(|(stamp, floor)| Command::RaiseFencingFloor { stamp, floor: FencingToken(floor) }),
    ]
}

/// Numbers at both ends of the range, around 2^53, and in between.
pub fn extreme() -> impl Strategy<Value = u64> {
    let near = |middle: u64| (-2..=2_i64).prop_map(move |off| middle.saturating_add_signed(off));
    prop_oneof![3 => 0..20_000_u64, 1 => near(0), 1 => near(u64::MAX), 1 => near(1 << 53), 1 => any::<u64>()]
}
