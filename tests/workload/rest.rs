//! The end of a run. No more faults are injected, everything has to work again, and all nodes must reach the same
//! state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::client::Client;
use super::history::{Answer, Asked, MILLI, Moment, Rest, SECOND, Seen};
use super::outside::{Request, sleep};
use super::world::World;

/// How long the nodes may take to serve and to reach the same state after the last fault.
pub const REST_MAX: Moment = 30 * SECOND;

/// The applied index and the state digest that a node reports.
pub async fn report(world: &World, node: usize) -> Option<(u64, String)> {
    let request = Request { node, is_post: false, path: "/status".into(), idempotency_key: None, body: Value::Null };
    let answered = tokio::time::timeout(Duration::from_millis(500), world.outside.ask(request)).await;
    let Ok(Ok((200, body))) = answered else { return None };
    let report: Value = serde_json::from_slice(&body).ok()?;
    Some((report["applied_index"].as_u64()?, report["state_digest"].as_str()?.to_owned()))
}

/// Checks that these nodes work again, in this order:
/// 1. Each of them serves a campaign, a read, a renewal and a resignation, in the last of the world's rooms.
/// 2. All leases in the other rooms end.
/// 3. Each of these rooms can be won once more, and that lease ends as well.
/// 4. All these nodes reach the same state, and each room can be watched at each of them.
pub async fn come_to_rest(world: &Arc<World>, nodes: &[usize], open: &[Arc<AtomicU64>]) -> Rest {
    let mut rest = Rest { from: Some(world.now()), ..Rest::default() };
    let rooms = world.rooms.len() - 1;
    let deadline = world.now() + REST_MAX;
    for &node in nodes {
        while !serves(Client::new(world).at(node), rooms).await {
            if world.now() > deadline {
                rest.not_served.push(format!("n{} does not serve after the last fault", node + 1));
                break;
            }
            sleep(200 * MILLI).await;
        }
    }
    end_all_leases(Client::new(world).at(nodes[0]), rooms, deadline, &mut rest.not_served).await;
    rest.rooms = vec![None; rooms];
    rest.nodes = same_reports(world, nodes, deadline, &mut rest.not_served).await;
    while open.iter().any(|stream| stream.load(Ordering::SeqCst) == 0) {
        if world.now() > deadline {
            rest.not_served.push("some room can't be watched at some node".to_owned());
            break;
        }
        sleep(50 * MILLI).await;
    }
    sleep(SECOND).await;
    rest.open_streams = open.iter().map(|stream| stream.load(Ordering::SeqCst)).filter(|stream| *stream != 0).collect();
    rest
}

/// Waits until all rooms are vacant, wins each of them once more, and waits until they are vacant again.
async fn end_all_leases(mut reader: Client, rooms: usize, deadline: Moment, not_served: &mut Vec<String>) {
    for again in [true, false] {
        for room in 0..rooms {
            while reader.read(room, Asked::Read).await != Answer::Ok(Seen::Vacant) {
                if reader.now() > deadline {
                    not_served.push(format!("room {room} does not become vacant"));
                    break;
                }
                sleep(100 * MILLI).await;
            }
            // The lease isn't resigned. It must end by itself, in the log and in the streams.
            if again && reader.campaign(room, 0, None).await.is_err() {
                not_served.push(format!("room {room} can't be won"));
            }
        }
    }
}

/// Waits until all nodes report the same state. Returns the last reports.
async fn same_reports(
    world: &World,
    nodes: &[usize],
    deadline: Moment,
    not_served: &mut Vec<String>,
) -> Vec<(u64, String)> {
    loop {
        let mut reports = Vec::new();
        for &node in nodes {
            reports.extend(report(world, node).await);
        }
        let are_equal = reports.len() == nodes.len() && reports.iter().all(|report| *report == reports[0]);
        if are_equal {
            return reports;
        }
        if world.now() > deadline {
            not_served.push(format!("nodes do not reach the same state: {reports:?}"));
            return reports;
        }
        sleep(50 * MILLI).await;
    }
}

/// Whether a node serves a campaign, a read, renewals for 2 s, and a resignation.
async fn serves(mut client: Client, room: usize) -> bool {
    let Ok(holding) = client.campaign(room, 0, None).await else { return false };
    let read =
        matches!(client.read(room, Asked::Read).await, Answer::Ok(Seen::Occupied { term, .. }) if term == holding.term);
    let until = client.now() + 2 * SECOND;
    let Some(holding) = client.hold(holding, until).await else { return false };
    read && client.resign(&holding).await
}
