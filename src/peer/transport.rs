//! What goes to a peer with each request, and what its answer means.

use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::carrier::{Carrier, CarryFailure, Delivered, Parcel};
use super::messages::{PROTOCOL, header};
use crate::codec;
use crate::raft_types::NodeId;

/// Why a peer gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// No connection: the request was certainly not delivered.
    #[error("peer {address} cannot be reached: {reason}")]
    Unreachable {
        /// Whom we called.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// Sent, at least in part, and not answered in time or in full: the peer may have acted on it.
    #[error("peer {address} did not answer: {reason}")]
    NoAnswer {
        /// Whom we called.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// The peer turned the request down before it acted on it.
    #[error("peer {address} refused with status {status}: {reason}")]
    Refused {
        /// Whom we called.
        address: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        reason: String,
    },
    /// The request was too large to encode, or the answer was not what we expected.
    #[error("peer {address}: {reason}")]
    Malformed {
        /// Whom we called.
        address: String,
        /// What went wrong.
        reason: String,
    },
}

impl PeerError {
    /// Whether the peer certainly did nothing.
    pub fn certainly_not_delivered(&self) -> bool {
        matches!(self, PeerError::Unreachable { .. } | PeerError::Refused { .. })
    }
}

/// What nodes of one cluster share. It is never sent: a keyed hash of a fixed text proves that one knows it.
#[derive(Clone)]
pub struct ClusterSecret(SecretString);

impl ClusterSecret {
    /// A secret from the operator.
    pub fn new(text: SecretString) -> Self {
        Self(text)
    }

    fn proof(&self) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.expose_secret().as_bytes()).expect("HMAC takes a key of any length");
        mac.update(b"quorate peer request 1");
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        format!("Bearer {}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    /// Whether an `Authorization` header proves knowledge of the secret, in a time that doesn't depend on how
    /// much of it is right.
    pub fn is_proven_by(&self, authorization: Option<&[u8]>) -> bool {
        authorization.is_some_and(|given| self.proof().as_bytes().ct_eq(given).into())
    }
}

/// On whose behalf requests are sent.
#[derive(Debug, Clone, Copy)]
pub struct Sender {
    /// This node.
    pub node_id: NodeId,
    /// Its cluster; none yet while a cluster is being founded.
    pub cluster_id: Option<Uuid>,
}

/// Requests to peers. Cheap to clone.
#[derive(Clone)]
pub struct Transport {
    carrier: Arc<dyn Carrier>,
    proof: Option<HeaderValue>,
}

impl Transport {
    /// A transport that proves knowledge of the secret, if there is one.
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

    /// Asks a node whose id isn't known yet.
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
            headers.insert(header::CLUSTER, text.expect("a UUID is of letters, digits and hyphens"));
        }
        if let Some(to) = to {
            headers.insert(header::TO, to.into());
        }
        if let Some(proof) = &self.proof {
            headers.insert(AUTHORIZATION, proof.clone());
        }
        let parcel = Parcel { address: address.to_owned(), path: path.to_owned(), headers, body, timeout };
        let Delivered { status, body } = self.carrier.post(parcel).await.map_err(|failure| match failure {
            CarryFailure::Unreachable(reason) => PeerError::Unreachable { address: address.into(), reason },
            CarryFailure::NoAnswer(reason) => PeerError::NoAnswer { address: address.into(), reason },
        })?;
        if !(200..300).contains(&status) {
            let reason = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
            return Err(PeerError::Refused { address: address.into(), status, reason });
        }
        codec::decode(&body).map_err(|error| malformed(address, &error))
    }
}

fn malformed(address: &str, error: &codec::CodecError) -> PeerError {
    PeerError::Malformed { address: address.into(), reason: error.to_string() }
}

#[cfg(test)]
mod tests;
