//! Injects the next fault of a scenario.

use rand::RngExt;
use rand::rngs::StdRng;

use super::scenario::Scenario;
use super::strike::{HEALING_MAX, Strike};
use super::{cables, clocks, disks, processes};
use crate::lab::Lab;
use crate::outside::now;
use crate::workload::history::SECOND;

/// Injects one fault, undoes it, and waits until all nodes serve again.
pub async fn strike(lab: &mut Lab, scenario: Scenario, random: &mut StdRng) -> Strike {
    let from = now();
    let Some(raft_leader) = lab.raft_leader(HEALING_MAX).await else {
        let why = format!("no raft leader within {} s", HEALING_MAX / SECOND);
        return Strike::new("no fault, because there is no raft leader", from, vec![]).missed(Some(why));
    };
    let follower = (raft_leader + random.random_range(1..=2)) % 3;
    let mut strike = match scenario {
        Scenario::Kill => processes::kill(lab, raft_leader, follower, random).await,
        Scenario::Pause => {
            // Long pauses are rare. Otherwise they would fill a short run.
            let seconds = [1, 5, 1, 5, 1, 5, 1, 5, 1, 30][random.random_range(0..10)];
            processes::pause(lab, raft_leader, follower, seconds, random).await
        }
        Scenario::Restart => processes::restart(lab).await,
        Scenario::Mix => match random.random_range(0..8) {
            0..4 => processes::kill(lab, raft_leader, follower, random).await,
            4..7 => processes::pause(lab, raft_leader, follower, [1, 5][random.random_range(0..2)], random).await,
            _ => processes::restart(lab).await,
        },
        Scenario::Cut => cables::cut(lab, raft_leader, follower, random).await,
        Scenario::Delay => cables::delay(lab, raft_leader, follower, random).await,
        Scenario::Power => disks::power(lab, raft_leader, follower, random).await,
        Scenario::Full => disks::full(lab, raft_leader, follower, random).await,
        Scenario::Slow => disks::slow(lab, raft_leader, follower, random).await,
        Scenario::Clock => clocks::jump(lab, raft_leader, follower, random).await,
        Scenario::Dead => disks::dead(lab, raft_leader, follower, random).await,
    };
    strike.fault.from = from;
    strike.fault.healed = lab.healed(HEALING_MAX).await;
    strike
}
