//! Wall clocks that jump. The only effect may be another `expires_at`.

use rand::RngExt;
use rand::rngs::StdRng;

use super::strike::{RAFT_ELECTION_MAX, Strike};
use crate::lab::Lab;
use crate::outside::now;
use crate::workload::history::{MILLI, Moment, SECOND};
use crate::workload::outside::sleep;

/// How long a node may take to show that its clock has jumped. The raft leader compares its clocks once a second.
const SHOWN_MAX: Moment = 5 * SECOND;
const HOUR: i64 = 3_600;

/// Sets the clock of one node or of all, and back again. In some runs the raft leader is killed meanwhile, so that the
/// next raft leader has a clock that differs by hours.
pub async fn jump(lab: &mut Lab, raft_leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let mut hours = || [2, -2, 24, -24][random.random_range(0..4)];
    let (one, others) = (hours(), [hours(), hours(), hours()]);
    let (name, jumps) = match random.random_range(0..4) {
        0 => ("the raft leader's wall clock", vec![(raft_leader, one)]),
        1 => ("a raft follower's wall clock", vec![(follower, one)]),
        2 => ("all wall clocks", (0..3).map(|place| (place, one)).collect()),
        _ => ("each wall clock by itself", (0..3).map(|place| (place, others[place])).collect()),
    };
    let with_kill = random.random_bool(0.3);
    let stepped_before = lab.count_in_log(raft_leader, STEPPED);
    let from = now();
    for (place, hours) in &jumps {
        lab.wall_clock(*place).set(hours * HOUR);
    }
    let mut missed = None;
    for (place, hours) in &jumps {
        if !is_shown(lab, *place, *hours, stepped_before, *place == raft_leader).await {
            missed = Some(format!("the clock of n{} did not jump", place + 1));
        }
    }
    sleep(random.random_range(500..4_000) * MILLI).await;
    let mut down = 0;
    if with_kill {
        down = random.random_range(100..6_000);
        lab.kill(raft_leader);
        sleep(down * MILLI).await;
        lab.start_node(raft_leader);
    }
    let shown: Vec<String> = jumps.iter().map(|(_, hours)| format!("{hours:+} h")).collect();
    let killed = if with_kill { format!(", and its raft leader killed for {down} ms") } else { String::new() };
    let strike = Strike::new(format!("{name}: {}{killed}", shown.join(", ")), from, vec![]);
    for (place, _) in &jumps {
        lab.wall_clock(*place).set(0);
    }
    let strike =
        strike.needs_raft_election(with_kill && down * MILLI > RAFT_ELECTION_MAX).missed(missed).leaves_a_quorum(true);
    // A clock that jumps must cost nothing, so the checker isn't told of it.
    if with_kill { strike } else { Strike { is_excuse: false, ..strike } }
}

const STEPPED: &str = "the wall clock has stepped";

/// Whether a node has seen its clock jump. Each reading of the clock reads the clock's file again, which its access
/// time shows. A raft leader also logs that its clock has stepped. A raft follower shows its clock in the `Date` of its
/// responses only. A step back can't be seen there: the node keeps the text of a second until that second is over.
async fn is_shown(lab: &Lab, place: usize, hours: i64, stepped_before: usize, leads: bool) -> bool {
    let deadline = now() + SHOWN_MAX;
    loop {
        let by_date = lab.wall_clock_error(place).await.is_some_and(|error| error > hours * HOUR - 60);
        let by_log = !leads || lab.count_in_log(place, STEPPED) > stepped_before;
        if lab.wall_clock(place).was_read() && by_log && (by_date || hours < 0) {
            return true;
        }
        if now() > deadline {
            return false;
        }
        sleep(50 * MILLI).await;
    }
}
