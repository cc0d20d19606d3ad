//! What clients need from outside: a way to the nodes, and a clock.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;

use super::history::Moment;

/// One request to a node.
pub struct Request {
    pub node: usize,
    pub is_post: bool,
    pub path: String,
    pub idempotency_key: Option<String>,
    pub body: Value,
}

/// Why there is no complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// Nothing was sent.
    NoConnection,
    /// Something was sent, and its outcome is unknown.
    Unknown,
}

/// How clients reach the nodes, and what time it is. There is a real implementation and a simulated one. To drop the
/// future of a request is to hang up.
pub trait Outside: Send + Sync + 'static {
    fn now(&self) -> Moment;
    /// Sends a request. Returns the status and the body.
    fn ask(&self, request: Request) -> BoxFuture<'static, Result<(u16, Vec<u8>), NoAnswer>>;
    /// Opens a watch stream, and returns its bytes as they arrive.
    fn watch(&self, node: usize, path: String) -> BoxFuture<'static, Option<BoxStream<'static, Vec<u8>>>>;
}

/// Sleeps for a duration in microseconds.
pub async fn sleep(duration: Moment) {
    tokio::time::sleep(Duration::from_micros(duration)).await;
}
