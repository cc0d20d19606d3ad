//! A client that watches a room.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use serde_json::Value;

use super::history::{MILLI, WatchEvent};
use super::outside::sleep;
use super::world::World;

/// Watches a room at a node for ever, one stream after the other. `open` holds the number of the stream while it is
/// open, and 0 otherwise.
pub async fn keep_watching(world: Arc<World>, node: usize, room: usize, open: Arc<AtomicU64>) {
    let path = format!("/elections/{}/watch", world.rooms[room]);
    loop {
        if let Some(mut chunks) = world.outside.watch(node, path.clone()).await {
            let stream = world.next_stream();
            let mut text = String::new();
            while let Some(chunk) = chunks.next().await {
                let at = world.now();
                text.push_str(&String::from_utf8_lossy(&chunk));
                while let Some((event, rest)) = text.split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())) {
                    text = rest;
                    let Some(holder) = holder_in(&event) else { continue };
                    world.recorder.record(|history| {
                        history.events.push(WatchEvent { stream, node, room, at, holder });
                    });
                    open.store(stream, Ordering::SeqCst);
                }
            }
            open.store(0, Ordering::SeqCst);
            let ended = world.now();
            world.recorder.record(|history| {
                history.stream_ends.insert(stream, ended);
            });
        }
        sleep(300 * MILLI).await;
    }
}

/// The holder and its term that an event shows, or `Some(None)` for a vacant room. `None` if the event has no data.
fn holder_in(event: &str) -> Option<Option<(String, u64)>> {
    let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
    let data: Value = serde_json::from_str(data).expect("an event's data is JSON");
    let leader = data.get("leader").expect("an event has a leader, which may be null");
    Some((!leader.is_null()).then(|| {
        let name = leader["candidate_id"].as_str().expect("a leader has a name").to_owned();
        (name, leader["term"].as_u64().expect("a leader has a term"))
    }))
}
