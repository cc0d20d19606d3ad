//! Faults of the network between the nodes.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::strike::{RAFT_ELECTION_MAX, Strike};
use crate::lab::{Lab, tracers};
use crate::outside::now;
use crate::proxy::Weather;
use crate::workload::history::MILLI;
use crate::workload::outside::sleep;

/// Cuts cables for some seconds.
pub async fn cut(lab: &mut Lab, raft_leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let third = 3 - raft_leader - follower;
    let both = |a, b| vec![(a, b), (b, a)];
    let (name, cables, alone) = match random.random_range(0..6) {
        0 => (
            "cut the raft leader off",
            [both(raft_leader, follower), both(raft_leader, third)].concat(),
            vec![raft_leader],
        ),
        1 => ("cut a raft follower off", [both(follower, raft_leader), both(follower, third)].concat(), vec![follower]),
        2 => ("cut between raft leader and follower", both(raft_leader, follower), vec![]),
        // An exchange needs both directions. So a node that receives nothing, or whose messages get lost, has no
        // quorum.
        3 => {
            ("nothing reaches the raft leader", vec![(follower, raft_leader), (third, raft_leader)], vec![raft_leader])
        }
        4 => ("nothing leaves the raft leader", vec![(raft_leader, follower), (raft_leader, third)], vec![raft_leader]),
        _ => ("nothing leaves a raft follower", vec![(follower, raft_leader), (follower, third)], vec![follower]),
    };
    let is_silenced = cables.contains(&(raft_leader, follower)) && cables.contains(&(raft_leader, third));
    let arrived_before = lab.datagrams_for_no_listener();
    for (from, to) in &cables {
        lab.cut(*from, *to);
    }
    lab.send_tracers();
    // Packets that were in flight have arrived by then.
    let cut_from = now() + 50 * MILLI;
    let length = random.random_range(1_000..9_000);
    sleep(length * MILLI).await;
    let strike = Strike::new(format!("{name} for {length} ms"), cut_from, alone)
        .needs_raft_election(is_silenced && length * MILLI > RAFT_ELECTION_MAX)
        .leaves_a_quorum(true)
        .missed(tracers_gone_wrong(&cables, arrived_before, lab.datagrams_for_no_listener()));
    lab.join_all();
    strike
}

/// What is wrong, if tracers got through a cut cable, or were lost on another one.
fn tracers_gone_wrong(cables: &[(usize, usize)], before: [u64; 3], after: [u64; 3]) -> Option<String> {
    (0..3).find_map(|to| {
        let heard = (0..3).filter(|from| *from != to && !cables.contains(&(*from, to)));
        let expected: u64 = heard.map(tracers).sum();
        let arrived = after[to] - before[to];
        (arrived != expected).then(|| format!("{arrived} tracers reached n{} instead of {expected}", to + 1))
    })
}

/// Makes links slow, stalled, half-open or narrow for some seconds.
pub async fn delay(lab: &mut Lab, raft_leader: usize, follower: usize, random: &mut StdRng) -> Strike {
    let (ways, place, weather, what) = draw_weather(raft_leader, follower, random);
    // One direction that passes nothing is enough to leave the raft leader without a quorum.
    let passes_nothing = weather.stalled || weather.swallowed;
    let alone = if passes_nothing && place != "between raft leader and follower" { vec![raft_leader] } else { vec![] };
    let struck_before = lab.proxies().struck();
    lab.proxies().set(&ways, weather);
    // Packets that were in flight have arrived by then.
    let from = now() + 50 * MILLI;
    let length = random.random_range(1_000..9_000);
    sleep(length * MILLI).await;
    let struck = lab.proxies().struck() - struck_before;
    // A raft leader whose messages or whose replies are lost is replaced.
    let needs_raft_election = !alone.is_empty() && length * MILLI > RAFT_ELECTION_MAX;
    // With a round trip longer than the heartbeat interval of 100 ms, or with very low bandwidth, raft leaders change
    // and commit nothing for a while. So no limit on the outage applies then.
    let is_far = weather.delay >= Duration::from_millis(50) && place != "around a raft follower";
    let quorum = !is_far && weather.bytes_per_second.is_none();
    let name = format!("{what} {place} for {length} ms, {struck} pieces");
    let strike = Strike::new(name, from, alone).needs_raft_election(needs_raft_election).leaves_a_quorum(quorum);
    lab.proxies().clear();
    strike.missed((struck == 0).then(|| "no piece of data was affected".to_owned()))
}

/// Draws which links become bad, where they are in words, their weather, and the weather in words.
fn draw_weather(
    raft_leader: usize,
    follower: usize,
    random: &mut StdRng,
) -> (Vec<(usize, usize)>, String, Weather, String) {
    let third = 3 - raft_leader - follower;
    let from_leader = vec![(raft_leader, follower), (raft_leader, third)];
    let to_leader = vec![(follower, raft_leader), (third, raft_leader)];
    let around_leader = [from_leader.clone(), to_leader.clone()].concat();
    let around_follower = vec![(raft_leader, follower), (follower, raft_leader), (third, follower), (follower, third)];
    let pair = vec![(raft_leader, follower), (follower, raft_leader)];
    let everywhere = [around_leader.clone(), vec![(third, follower), (follower, third)]].concat();
    let of = |name: &str, ways: &[(usize, usize)]| (name.to_owned(), ways.to_vec());
    let ((place, ways), weather, what) = match random.random_range(0..10) {
        0..4 => {
            let millis = [5, 50, 300][random.random_range(0..3)];
            let delay = Duration::from_millis(millis);
            let ways = match random.random_range(0..3) {
                0 => of("everywhere", &everywhere),
                1 => of("around the raft leader", &around_leader),
                _ => of("around a raft follower", &around_follower),
            };
            (
                ways,
                Weather { delay, jitter: delay / 2, ..Weather::default() },
                format!("{millis} ms of delay and up to half as much jitter"),
            )
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
    (ways, place, weather, what)
}
