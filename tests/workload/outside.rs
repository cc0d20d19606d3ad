//! How clients reach nodes, and which clock they have.

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

/// Why there is no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// Nothing was sent.
    NoConnection,
    /// Something was, and anything may come of it.
    Unknown,
}

/// How clients reach nodes, and which clock they have: real ones or simulated ones. A request whose future is dropped
/// is one whose client hangs up.
pub trait Outside: Send + Sync + 'static {
    fn now(&self) -> Moment;
    /// Status and body.
    fn ask(&self, request: Request) -> BoxFuture<'static, Result<(u16, Vec<u8>), NoAnswer>>;
    /// The bytes of a watch stream, as they come.
    fn watch(&self, node: usize, path: String) -> BoxFuture<'static, Option<BoxStream<'static, Vec<u8>>>>;
}

pub async fn sleep(duration: Moment) {
    tokio::time::sleep(Duration::from_micros(duration)).await;
}
