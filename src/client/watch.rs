//! A stream of a room's state that goes on when a node fails.
//!
//! A node may lag behind the others, so its events may be old. After each connect, a linearizable read replaces the
//! first event. Events with a lower term than one that was passed on are left out.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};

use super::backoff::{Backoff, Fraction};
use super::error::{ClientError, Rejection};
use super::room_calls::RoomCalls;
use crate::domain::FencingToken;
use crate::wire::{ErrorBody, ErrorCode, RoomStatus, WatchEvent};

/// A node sends an event or a comment at least every 15 s. If a node is silent for longer than this, the connection is
/// treated as dead.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// How long a node may take to open a stream, or to send the body of an error.
const OPEN_DEADLINE: Duration = Duration::from_secs(4);
/// The longest event that is read. The longest real one carries metadata of 4 KiB.
const EVENT_BYTES_MAX: usize = 64 * 1024;

type Bytes = Pin<Box<dyn Stream<Item = Result<Vec<u8>, ()>> + Send>>;

/// The stream of [`Election::watch`](super::Election::watch).
pub(super) fn watch(calls: RoomCalls) -> impl Stream<Item = Result<WatchEvent, ClientError>> + Send + use<> {
    let reader = Reader { calls, source: None, backoff: Backoff::new(), seen: FencingToken(0), failed: false };
    futures::stream::unfold(reader, |mut reader| async move {
        if reader.failed {
            return None;
        }
        let item = reader.next().await;
        reader.failed = item.is_err();
        Some((item, reader))
    })
}

/// The state between two items.
struct Reader {
    calls: RoomCalls,
    /// None before the first connect, and after a connection broke.
    source: Option<Source>,
    backoff: Backoff,
    /// The highest term that was passed on.
    seen: FencingToken,
    /// Whether an error was passed on. It is the last item of the stream.
    failed: bool,
}

/// One connection to a node.
struct Source {
    server: String,
    bytes: Bytes,
    events: Events,
    /// Whether no event of this connection has been read yet.
    is_fresh: bool,
}

impl Reader {
    async fn next(&mut self) -> Result<WatchEvent, ClientError> {
        loop {
            let Some(source) = &mut self.source else {
                self.connect().await?;
                continue;
            };
            match source.next_event().await {
                Some(event) => {
                    let first = std::mem::take(&mut source.is_fresh);
                    let event = if first { re_read(&self.calls, event).await } else { event };
                    let term = event.leader.as_ref().map(|leader| leader.term);
                    if term.is_some_and(|term| term < self.seen) {
                        continue;
                    }
                    self.seen = term.unwrap_or(self.seen);
                    self.backoff = Backoff::new();
                    return Ok(event);
                }
                None => {
                    let server = std::mem::take(&mut source.server);
                    tracing::debug!(%server, room = %self.calls.room, "the watch stream ended; another one is opened");
                    self.calls.caller.leave(&server);
                    self.source = None;
                }
            }
        }
    }

    /// Tries nodes until one opens a stream.
    async fn connect(&mut self) -> Result<(), ClientError> {
        let caller = self.calls.caller.clone();
        let call = self.calls.watch();
        for tries in 1_usize.. {
            let server = caller.current_server().to_owned();
            let opened = tokio::time::timeout(OPEN_DEADLINE, caller.request(&server, &call).send()).await;
            let mut asked_to_pause = Duration::ZERO;
            if let Ok(Ok(response)) = opened {
                let status = response.status();
                if status.is_success() {
                    let bytes = response.bytes_stream().map(|chunk| chunk.map(|bytes| bytes.to_vec()).map_err(drop));
                    let events = Events::default();
                    self.source = Some(Source { server, bytes: Box::pin(bytes), events, is_fresh: true });
                    return Ok(());
                }
                let body = tokio::time::timeout(OPEN_DEADLINE, response.json::<ErrorBody>()).await;
                if let Ok(Ok(body)) = body
                    && status.is_client_error()
                {
                    let rejection = Rejection::new(status.as_u16(), body);
                    if !rejection.is(ErrorCode::RateLimited) {
                        return Err(ClientError::Rejected(rejection));
                    }
                    asked_to_pause = rejection.retry_after.unwrap_or_default();
                }
            }
            caller.leave(&server);
            if tries.is_multiple_of(caller.urls.len()) {
                tokio::time::sleep(self.backoff.next(Fraction::random()).max(asked_to_pause)).await;
            }
        }
        Ok(())
    }
}

/// Replaces the first event of a node, which may be old, by a linearizable read. If the read fails, the event is used.
async fn re_read(calls: &RoomCalls, shown: WatchEvent) -> WatchEvent {
    match calls.status().await {
        Ok(RoomStatus { status, leader, retry_after_ms, .. }) => WatchEvent { status, leader, retry_after_ms, ..shown },
        Err(error) => {
            tracing::debug!(%error, "the room could not be read; the event of the node is used, and may be old");
            shown
        }
    }
}

impl Source {
    async fn next_event(&mut self) -> Option<WatchEvent> {
        loop {
            if let Some(event) = self.events.ready.pop_front() {
                return Some(event);
            }
            match tokio::time::timeout(SILENCE_MAX, self.bytes.next()).await {
                Ok(Some(Ok(chunk))) => self.events.read(&chunk)?,
                _ => return None,
            }
        }
    }
}

/// A parser of server-sent events.
#[derive(Default)]
struct Events {
    line: Vec<u8>,
    data: String,
    ready: VecDeque<WatchEvent>,
}

impl Events {
    /// Reads the next bytes. `None` if an event is too long to come from quorate.
    fn read(&mut self, chunk: &[u8]) -> Option<()> {
        for byte in chunk {
            match byte {
                b'\n' => self.end_of_line(),
                b'\r' => {}
                _ => self.line.push(*byte),
            }
            if self.line.len() + self.data.len() > EVENT_BYTES_MAX {
                return None;
            }
        }
        Some(())
    }

    fn end_of_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            // A later version may send events that this one cannot read. They are skipped.
            if let Ok(event) = serde_json::from_str(&std::mem::take(&mut self.data)) {
                self.ready.push_back(event);
            }
        } else if let Some(data) = String::from_utf8_lossy(&line).strip_prefix("data:") {
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        }
    }
}

#[cfg(test)]
mod tests;
