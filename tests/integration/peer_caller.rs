//! Requests to a node's peer listener, with any proof and any body.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use quorate::peer::{ClusterSecret, HttpCarrier, PROTOCOL, PeerIdentity, Sender, Transport, header, path};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{CLUSTER_SECRET, Cluster};
use crate::secret_scanner::hex;

/// The proof of membership. It is computed here a second time because other versions rely on its exact form.
pub fn proof_of(secret: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(b"quorate peer request 1");
    format!("Bearer {}", hex(&mac.finalize().into_bytes()))
}

/// The peer listener of one node.
pub struct Target {
    address: String,
    pub identity: PeerIdentity,
}

impl Target {
    pub async fn of(cluster: &Cluster, place: usize) -> Target {
        let url = cluster.nodes[place].settings.peer_url();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        let transport = Transport::new(
            Arc::new(HttpCarrier::new().unwrap()),
            Some(&ClusterSecret::new(CLUSTER_SECRET.to_owned().into())),
        )
        .unwrap();
        let stranger = Sender { node_id: 1, cluster_id: None };
        let identity =
            transport.ask_identity(&address, path::IDENTITY, stranger, Duration::from_secs(5)).await.unwrap();
        Target { address, identity }
    }

    /// The headers that a member sends.
    pub fn headers(&self) -> Headers {
        Headers {
            authorization: Some(proof_of(CLUSTER_SECRET)),
            protocol: PROTOCOL.to_string(),
            cluster: self.identity.cluster_id.unwrap().to_string(),
            to: self.identity.node_id.to_string(),
        }
    }

    /// Sends a head that announces `announced` bytes, then `body`. Returns the status, the whole answer, and the time
    /// it took.
    pub async fn ask(&self, path: &str, headers: &Headers, announced: usize, body: &[u8]) -> (u16, String, Duration) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let authorization =
            headers.authorization.as_ref().map_or(String::new(), |value| format!("Authorization: {value}\r\n"));
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: peer\r\nConnection: close\r\n{authorization}{}: {}\r\n{}: {}\r\n{}: 1\r\n\
             {}: {}\r\nContent-Length: {announced}\r\n\r\n",
            header::PROTOCOL,
            headers.protocol,
            header::CLUSTER,
            headers.cluster,
            header::FROM,
            header::TO,
            headers.to,
        );
        let sent_at = Instant::now();
        stream.write_all(head.as_bytes()).await.unwrap();
        // A node that has already rejected the head may close before the body arrives.
        let _ = stream.write_all(body).await;
        let mut answer = Vec::new();
        let read = async {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut piece).await {
                answer.extend_from_slice(&piece[..count]);
            }
        };
        tokio::time::timeout(Duration::from_secs(10), read).await.expect("an answer");
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
        (status.unwrap_or_else(|| panic!("no answer to {path}: {text:?}")), text, sent_at.elapsed())
    }
}

/// The headers that prove that a request comes from a member, and say which node it is for.
#[derive(Debug, Clone)]
pub struct Headers {
    pub authorization: Option<String>,
    pub protocol: String,
    pub cluster: String,
    pub to: String,
}
