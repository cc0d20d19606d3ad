//! Requests written byte by byte, and the node that they are for.

use serde_json::json;

use crate::caller::Caller;
use crate::harness::Cluster;

pub const ROOM: &str = "/elections/raw-bytes-room";

/// A node that logs every request.
pub async fn node() -> Cluster {
    Cluster::single_with(&["--log-level", "debug"]).await
}

/// Checks that the node still serves, and that it has logged neither a panic nor an error.
pub async fn is_unharmed(cluster: &Cluster) {
    let node = &cluster.nodes[0];
    let caller = Caller::of(node).await;
    let held = caller.campaign("after-all-that", json!({"candidate_id": "worker-a"})).await.held("after-all-that");
    assert_eq!(caller.renew("after-all-that", &held.token).await.status, 200);
    assert_eq!(caller.resign("after-all-that", &held.token).await.status, 200);
    let output = node.output();
    assert!(output.contains("request answered"), "the node logs no requests, so this check shows nothing");
    for bad in ["panicked", "\"level\":\"ERROR\""] {
        assert!(!output.contains(bad), "{bad}:\n{output}");
    }
}

/// A request without a body.
pub fn plain(method: &str, path: &str, headers: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n").into_bytes()
}

/// The body of a campaign: 20 bytes.
pub const CAMPAIGN: &[u8] = br#"{"candidate_id":"a"}"#;

/// A campaign with these framing headers and this body.
pub fn framed(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let head = format!("POST {ROOM}/campaign HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{headers}\r\n");
    [head.as_bytes(), body.as_ref()].concat()
}

/// A campaign with this text as its content length. The body has 20 bytes.
pub fn with_length(length: &str) -> Vec<u8> {
    framed(&format!("Content-Length: {length}\r\n"), CAMPAIGN)
}
