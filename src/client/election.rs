//! One room, as its client sees it.

use futures::Stream;

use super::campaign::Campaign;
use super::error::ClientError;
use super::room_calls::RoomCalls;
use super::watch;
use crate::domain::{ContenderId, RoomId};
use crate::wire::{LeaderToken, Resigned, RoomStatus, WatchEvent};

/// One room.
#[derive(Clone)]
pub struct Election {
    pub(super) calls: RoomCalls,
}

impl Election {
    /// Which room.
    pub fn room(&self) -> &RoomId {
        &self.calls.room
    }

    /// Who leads, by a linearizable read.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<RoomStatus, ClientError> {
        self.calls.status().await
    }

    /// How the room stands now, and again at each change, for as long as the stream is polled.
    ///
    /// A stream of a node that breaks off is taken up with another node, by a fresh read: an event in between may
    /// be missed, the state never. An error is final, for it says that asking again won't help.
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

    /// A campaign of this candidate. Nothing is sent yet.
    ///
    /// # Errors
    /// If `candidate` isn't 1 to 64 characters of `A-Z a-z 0-9 . _ : @ -`, or if tokens would be sent in clear to
    /// another machine.
    pub fn campaign(&self, candidate: &str) -> Result<Campaign, ClientError> {
        self.calls.caller.may_send_secrets()?;
        Ok(Campaign::new(self.calls.clone(), ContenderId::new(candidate)?))
    }

    /// Ends a lease that nobody keeps here any more, by its token. `None` if it had ended already.
    ///
    /// # Errors
    /// See [`ClientError`]. After `OutcomeUnknown` the room may be vacant.
    pub async fn resign(&self, token: LeaderToken) -> Result<Option<Resigned>, ClientError> {
        self.calls.caller.may_send_secrets()?;
        self.calls.resign(token, self.calls.caller.deadline()).await
    }
}

#[cfg(test)]
mod tests;
