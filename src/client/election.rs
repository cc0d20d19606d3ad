//! One room: read it, watch it, campaign for it.

use futures::Stream;

use super::campaign::Campaign;
use super::error::ClientError;
use super::room_calls::RoomCalls;
use super::watch;
use crate::domain::{ContenderId, RoomId};
use crate::wire::{LeaderToken, Resigned, RoomStatus, WatchEvent};

/// One room, at the nodes of its [`Client`](super::Client). [`Client::election`](super::Client::election) makes one.
#[derive(Clone)]
pub struct Election {
    pub(super) calls: RoomCalls,
}

impl Election {
    /// The name of the room.
    pub fn room(&self) -> &RoomId {
        &self.calls.room
    }

    /// The current leader. The read is linearizable: it sees every change that was answered before the read was sent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<RoomStatus, ClientError> {
        self.calls.status().await
    }

    /// A stream of the room's state: first as it is now, then at each change.
    ///
    /// If the connection to a node breaks, the stream goes on at another node, and begins there with a fresh
    /// [`status`](Election::status). The stream may miss changes in between, but not the latest state. The terms in the
    /// stream never go down.
    ///
    /// The stream waits while no node can be reached. An error is its last item: a retry would not help.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.rs"));
    /// # fn main() { with_a_node(async |node| {
    /// # let client = quorate::client::Client::builder().urls(node).build()?;
    /// # let leadership = client.election("nightly-report")?.campaign("worker-a")?.wait().await?;
    /// use futures::StreamExt;
    ///
    /// let mut events = Box::pin(client.election("nightly-report")?.watch());
    /// while let Some(event) = events.next().await {
    ///     let Some(leader) = event?.leader else { continue };
    ///     println!("{} leads, term {}", leader.candidate_id, leader.term);
    /// #   assert_eq!(leader.term, leadership.term());
    /// #   break;
    /// }
    /// # Ok(()) }) }
    /// ```
    pub fn watch(&self) -> impl Stream<Item = Result<WatchEvent, ClientError>> + Send + use<> {
        watch::watch(self.calls.clone())
    }

    /// A campaign for this room by `candidate`. Nothing is sent yet.
    ///
    /// # Errors
    /// - [`ClientError::Invalid`] if `candidate` is not 1 to 64 characters of `A-Z a-z 0-9 . _ : @ -`.
    /// - [`ClientError::Cleartext`] if the leader token would travel unencrypted to another machine.
    pub fn campaign(&self, candidate: &str) -> Result<Campaign, ClientError> {
        self.calls.caller.may_send_secrets()?;
        Ok(Campaign::new(self.calls.clone(), ContenderId::new(candidate)?))
    }

    /// Ends the lease that `token` belongs to. This is for a lease without a [`Leadership`](super::Leadership), such as
    /// one from [`Campaign::unattended`]. Returns `None` if the lease had ended already.
    ///
    /// # Errors
    /// See [`ClientError`]. After [`ClientError::OutcomeUnknown`] the room may be vacant.
    pub async fn resign(&self, token: LeaderToken) -> Result<Option<Resigned>, ClientError> {
        self.calls.caller.may_send_secrets()?;
        self.calls.resign(token, self.calls.caller.deadline()).await
    }
}

#[cfg(test)]
mod tests;
