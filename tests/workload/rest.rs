//! The end of a run: nothing is done to the nodes any more, and all has to work again and to stand alike.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::client::Client;
use super::history::{Answer, Asked, MILLI, Moment, Rest, SECOND, Seen};
use super::outside::{Request, sleep};
use super::world::World;

/// How long nodes may take to stand alike and to serve, once nothing is done to them any more.
pub const REST_MAX: Moment = 30 * SECOND;

/// What a node says about itself.
pub async fn report(world: &World, node: usize) -> Option<(u64, String)> {
    let request = Request { node, is_post: false, path: "/status".into(), idempotency_key: None, body: Value::Null };
    let answered = tokio::time::timeout(Duration::from_millis(500), world.outside.ask(request)).await;
    let Ok(Ok((200, body))) = answered else { return None };
    let report: Value = serde_json::from_slice(&body).ok()?;
    Some((report["applied_index"].as_u64()?, report["state_digest"].as_str()?.to_owned()))
}

/// Each of these nodes serves everything once; then all leases end, each room can be had once more, that lease ends too, and
/// all these nodes and all streams show it. The last of the world's rooms is the one that nobody else uses.
pub async fn come_to_rest(world: &Arc<World>, nodes: &[usize], open: &[Arc<AtomicU64>]) -> Rest {
    let mut rest = Rest { from: Some(world.now()), ..Rest::default() };
    let rooms = world.rooms.len() - 1;
    let deadline = world.now() + REST_MAX;
    for &node in nodes {
        while !serves(world.client().at(node), rooms).await {
            if world.now() > deadline {
                rest.not_served.push(format!("n{} does not serve after all faults", node + 1));
                break;
            }
            sleep(200 * MILLI).await;
        }
    }
    let mut reader = world.client().at(nodes[0]);
    for again in [true, false] {
        for room in 0..rooms {
            while reader.read(room, Asked::Read).await != Answer::Ok(Seen::Vacant) {
                if world.now() > deadline {
                    rest.not_served.push(format!("room {room} does not become vacant"));
                    break;
                }
                sleep(100 * MILLI).await;
            }
            // Nobody gives it back: that the lease has ended is for the log to say, and for the streams to show.
            if again && reader.campaign(room, 0, None).await.is_err() {
                rest.not_served.push(format!("room {room} can't be had"));
            }
        }
    }
    rest.rooms = vec![None; rooms];
    loop {
        let mut reports = Vec::new();
        for &node in nodes {
            reports.extend(report(world, node).await);
        }
        let alike = reports.len() == nodes.len() && reports.iter().all(|report| *report == reports[0]);
        if !alike && world.now() <= deadline {
            sleep(50 * MILLI).await;
            continue;
        }
        if !alike {
            rest.not_served.push(format!("nodes do not come to stand alike: {reports:?}"));
        }
        rest.nodes = reports;
        break;
    }
    while open.iter().any(|stream| stream.load(Ordering::SeqCst) == 0) {
        if world.now() > deadline {
            rest.not_served.push("a room can't be watched on each node".to_owned());
            break;
        }
        sleep(50 * MILLI).await;
    }
    sleep(SECOND).await;
    rest.open_streams = open.iter().map(|stream| stream.load(Ordering::SeqCst)).filter(|stream| *stream != 0).collect();
    rest
}

async fn serves(mut client: Client, room: usize) -> bool {
    let Ok(holding) = client.campaign(room, 0, None).await else { return false };
    let read =
        matches!(client.read(room, Asked::Read).await, Answer::Ok(Seen::Held { term, .. }) if term == holding.term);
    let until = client.now() + 2 * SECOND;
    let Some(holding) = client.hold(holding, until).await else { return false };
    read && client.resign(&holding).await
}
