//! A request to a peer and its answer: headers, encoding, and the meaning of the status.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::carrier::{Carrier, Delivered, Parcel};
use super::error::PeerError;
use super::messages::{PROTOCOL, header};
use super::secret::ClusterSecret;
use crate::codec;
use crate::raft_types::NodeId;

/// The sender of a request.
#[derive(Debug, Clone, Copy)]
pub struct Sender {
    /// This node.
    pub node_id: NodeId,
    /// Its cluster. `None` while the cluster is being founded.
    pub cluster_id: Option<Uuid>,
}

/// Requests to peers. Cheap to clone.
#[derive(Clone)]
pub struct Transport {
    carrier: Arc<dyn Carrier>,
    proof: Option<HeaderValue>,
}

impl Transport {
    /// A transport. If there is a cluster secret, its requests carry a proof of it.
    pub fn new(carrier: Arc<dyn Carrier>, secret: Option<&ClusterSecret>) -> Result<Self, PeerError> {
        let proof = match secret {
            Some(secret) => {
                let mut value = HeaderValue::from_str(&secret.proof())
                    .map_err(|error| PeerError::Malformed { address: "(none)".into(), reason: error.to_string() })?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        Ok(Self { carrier, proof })
    }

    /// Sends a value to the node `to`, and reads a value back.
    pub async fn call<Request: Serialize, Response: DeserializeOwned>(
        &self,
        address: &str,
        path: &str,
        sender: Sender,
        to: NodeId,
        request: &Request,
        timeout: Duration,
    ) -> Result<Response, PeerError> {
        let body = codec::encode(request).map_err(|error| malformed(address, &error))?;
        self.send(address, path, sender, Some(to), body.into(), timeout).await
    }

    /// Asks a node whose id is not known yet.
    pub async fn ask_identity<Response: DeserializeOwned>(
        &self,
        address: &str,
        path: &str,
        sender: Sender,
        timeout: Duration,
    ) -> Result<Response, PeerError> {
        self.send(address, path, sender, None, Vec::new().into(), timeout).await
    }

    /// Sends a body of any length to the node `to`, and reads a value back.
    pub async fn send<Response: DeserializeOwned>(
        &self,
        address: &str,
        path: &str,
        sender: Sender,
        to: Option<NodeId>,
        body: reqwest::Body,
        timeout: Duration,
    ) -> Result<Response, PeerError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::PROTOCOL, PROTOCOL.into());
        headers.insert(header::FROM, sender.node_id.into());
        if let Some(cluster_id) = sender.cluster_id {
            let text = HeaderValue::from_str(&cluster_id.to_string());
            headers.insert(header::CLUSTER, text.expect("a UUID has only hexadecimal digits and hyphens"));
        }
        if let Some(to) = to {
            headers.insert(header::TO, to.into());
        }
        if let Some(proof) = &self.proof {
            headers.insert(AUTHORIZATION, proof.clone());
        }
        let parcel = Parcel { address: address.to_owned(), path: path.to_owned(), headers, body, timeout };
        let Delivered { status, body } = self.carrier.post(parcel).await?;
        if !(200..300).contains(&status) {
            let reason = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
            return Err(PeerError::Rejected { address: address.into(), status, reason });
        }
        codec::decode(&body).map_err(|error| malformed(address, &error))
    }
}

fn malformed(address: &str, error: &codec::CodecError) -> PeerError {
    PeerError::Malformed { address: address.into(), reason: error.to_string() }
}
