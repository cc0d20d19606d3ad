//! What is between the nodes.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::strike::{ELECTION_MAX, Strike};
use crate::lab::{Lab, tracers};
use crate::outside::now;
use crate::proxy::Weather;
use crate::workload::history::MILLI;
use crate::workload::outside::sleep;

pub async fn cut(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let third = 3 - leader - follower;
    let both = |a, b| vec![(a, b), (b, a)];
    let (name, cables, alone) = match random.random_range(0..6) {
        0 => ("cut the raft leader off", [both(leader, follower), both(leader, third)].concat(), vec![leader]),
        1 => ("cut a follower off", [both(follower, leader), both(follower, third)].concat(), vec![follower]),
        2 => ("cut between raft leader and follower", both(leader, follower), vec![]),
        // An exchange takes both ways: a node that hears nothing, or is not heard, is confirmed by nobody, and nobody
        // answers what it passes on.
        3 => ("nothing reaches the raft leader", vec![(follower, leader), (third, leader)], vec![leader]),
        4 => ("nothing leaves the raft leader", vec![(leader, follower), (leader, third)], vec![leader]),
        _ => ("nothing leaves a follower", vec![(follower, leader), (follower, third)], vec![follower]),
    };
    let silent = cables.contains(&(leader, follower)) && cables.contains(&(leader, third));
    let arrived_before = lab.datagrams_for_nobody();
    for (from, to) in &cables {
        lab.cut(*from, *to);
    }
    lab.send_tracers();
    // What was on its way has arrived by then.
    let cut_from = now() + 50 * MILLI;
    let length = random.random_range(1_000..9_000);
    sleep(length * MILLI).await;
    let strike = Strike::new(format!("{name} for {length} ms"), cut_from, alone)
        .elects(silent && length * MILLI > ELECTION_MAX)
        .leaves_a_quorum(true)
        .missed(otherwise_cut(&cables, arrived_before, lab.datagrams_for_nobody()));
    lab.join_all();
    strike
}

/// Whether tracers got through where they must not, or were lost elsewhere.
fn otherwise_cut(cables: &[(usize, usize)], before: [u64; 3], after: [u64; 3]) -> Option<String> {
    (0..3).find_map(|to| {
        let heard = (0..3).filter(|from| *from != to && !cables.contains(&(*from, to)));
        let expected: u64 = heard.map(tracers).sum();
        let arrived = after[to] - before[to];
        (arrived != expected).then(|| format!("{arrived} tracers reached n{}, where {expected} could", to + 1))
    })
}

pub async fn delay(lab: &mut Lab, leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let third = 3 - leader - follower;
    let from_leader = vec![(leader, follower), (leader, third)];
    let to_leader = vec![(follower, leader), (third, leader)];
    let around_leader = [from_leader.clone(), to_leader.clone()].concat();
    let around_follower = vec![(leader, follower), (follower, leader), (third, follower), (follower, third)];
    let pair = vec![(leader, follower), (follower, leader)];
    let everywhere = [around_leader.clone(), vec![(third, follower), (follower, third)]].concat();
    let of = |name: &str, ways: &[(usize, usize)]| (name.to_owned(), ways.to_vec());
    let ((place, ways), weather, what) = match random.random_range(0..10) {
        0..4 => {
            let millis = [5, 50, 300][random.random_range(0..3)];
            let delay = Duration::from_millis(millis);
            let ways = match random.random_range(0..3) {
                0 => of("everywhere", &everywhere),
                1 => of("around the raft leader", &around_leader),
                _ => of("around a follower", &around_follower),
            };
            (ways, Weather { delay, jitter: delay / 2, ..Weather::default() }, format!("{millis} ms and half as much"))
        }
        4..6 => {
            let ways = match random.random_range(0..3) {
                0 => of("around the raft leader", &around_leader),
                1 => of("from the raft leader", &from_leader),
                _ => of("to the raft leader", &to_leader),
            };
            (ways, Weather { stalled: true, ..Weather::default() }, "stalled".to_owned())
        }
        6..8 => {
            let ways = match random.random_range(0..2) {
                0 => of("around the raft leader", &around_leader),
                _ => of("between raft leader and follower", &pair),
            };
            (ways, Weather { swallowed: true, ..Weather::default() }, "half-open".to_owned())
        }
        _ => {
            let bytes_per_second = [200, 2_000][random.random_range(0..2)];
            let weather = Weather { bytes_per_second: Some(bytes_per_second), ..Weather::default() };
            (of("from the raft leader", &from_leader), weather, format!("{bytes_per_second} bytes a second"))
        }
    };
    // What is kept back or lost on one way only is enough, as with a cut cable.
    let passes_nothing = weather.stalled || weather.swallowed;
    let alone = if passes_nothing && place != "between raft leader and follower" { vec![leader] } else { vec![] };
    let struck_before = lab.proxies().struck();
    lab.proxies().set(&ways, weather);
    // What was on its way has arrived by then.
    let from = now() + 50 * MILLI;
    let length = random.random_range(1_000..9_000);
    sleep(length * MILLI).await;
    let struck = lab.proxies().struck() - struck_before;
    // A raft leader that nobody hears, or that hears nobody, makes way for another.
    let elects = !alone.is_empty() && length * MILLI > ELECTION_MAX;
    // Where a heartbeat and its answer take longer than the 100 ms between two, or little of what is sent arrives, raft
    // leaders change and get nowhere for a while.
    let is_far = weather.delay >= Duration::from_millis(50) && place != "around a follower";
    let quorum = !is_far && weather.bytes_per_second.is_none();
    let name = format!("{what} {place} for {length} ms, {struck} pieces");
    let strike = Strike::new(name, from, alone).elects(elects).leaves_a_quorum(quorum);
    lab.proxies().clear();
    strike.missed((struck == 0).then(|| "nothing came through".to_owned()))
}
