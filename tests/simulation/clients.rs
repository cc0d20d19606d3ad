//! The simulated host on which all clients run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;

use crate::plan::Plan;
use crate::workload::crowd::Crowd;
use crate::workload::history::{MILLI, Rest};
use crate::workload::outside::sleep;
use crate::workload::rest::come_to_rest;
use crate::workload::world::World;

/// What the clients and the injection of faults tell each other.
#[derive(Default)]
pub struct Signals {
    /// Set when one node has been taken away for good.
    pub gone: AtomicBool,
    /// Set when the clients have come to rest. Then a node may be taken away.
    pub rested: AtomicBool,
    pub rest: Mutex<Option<Rest>>,
}

/// A client of a scenario, beside the usual ones. It uses the last of the world's rooms.
pub type Guest = fn(Arc<World>) -> BoxFuture<'static, ()>;

/// Runs all clients until the end of the run.
pub async fn use_the_cluster(
    world: Arc<World>,
    signals: Arc<Signals>,
    founded: Arc<AtomicBool>,
    plan: Plan,
    guest: Option<Guest>,
) -> turmoil::Result {
    while !founded.load(Ordering::Relaxed) {
        sleep(10 * MILLI).await;
    }
    let mut crowd = Crowd::enter(&world, &plan.habits, 2);
    if let Some(guest) = guest {
        crowd.clients.spawn(guest(world.clone()));
    }
    while !world.is_closing() {
        sleep(10 * MILLI).await;
    }
    let in_time = crowd.leave().await;
    let mut rest = come_to_rest(&world, &[0, 1, 2], &crowd.open).await;
    if !in_time {
        rest.not_served.push("clients do not end".to_owned());
    }
    signals.rested.store(true, Ordering::Relaxed);
    if let Some(gone) = plan.gone_at_last {
        while !signals.gone.load(Ordering::Relaxed) {
            sleep(10 * MILLI).await;
        }
        let others: Vec<usize> = (0..3).filter(|place| *place != gone).collect();
        let open = crowd.open.iter().enumerate().filter(|(number, _)| number % 3 != gone);
        let open: Vec<_> = open.map(|(_, stream)| stream.clone()).collect();
        let alone = come_to_rest(&world, &others, &open).await;
        rest.open_streams = alone.open_streams;
        rest.not_served.extend(alone.not_served.iter().map(|what| format!("without n{}: {what}", gone + 1)));
    }
    crowd.observers.shutdown().await;
    *signals.rest.lock().unwrap() = Some(rest);
    Ok(())
}
