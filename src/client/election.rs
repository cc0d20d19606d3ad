//! One room, as its client sees it.

use futures::Stream;

use super::caller::Call;
use super::campaign::Campaign;
use super::error::ClientError;
use super::handle::Client;
use super::holder_clock::Deadline;
use super::watch;
use crate::domain::{ContenderId, RoomId};
use crate::wire::{ErrorCode, LeaderToken, ResignRequest, Resigned, RoomStatus, WatchEvent};

/// One room.
#[derive(Clone)]
pub struct Election {
    pub(super) client: Client,
    pub(super) room: RoomId,
}

impl Election {
    /// Which room.
    pub fn room(&self) -> &RoomId {
        &self.room
    }

    /// Who leads, by a linearizable read.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<RoomStatus, ClientError> {
        let call = Call::get(format!("/elections/{}", self.room));
        Ok(self.client.caller.call(&call, self.client.deadline()).await?.body)
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
        watch::watch(self.clone())
    }

    /// A campaign of this candidate. Nothing is sent yet.
    ///
    /// # Errors
    /// If `candidate` isn't 1 to 64 characters of `A-Z a-z 0-9 . _ : @ -`, or if tokens would be sent in clear to
    /// another machine.
    pub fn campaign(&self, candidate: &str) -> Result<Campaign, ClientError> {
        self.client.may_send_secrets()?;
        Ok(Campaign::new(self.clone(), ContenderId::new(candidate)?))
    }

    /// Ends a lease that nobody keeps here any more, by its token. `None` if it had ended already.
    ///
    /// # Errors
    /// See [`ClientError`]. After `OutcomeUnknown` the room may be vacant.
    pub async fn resign(&self, token: LeaderToken) -> Result<Option<Resigned>, ClientError> {
        self.client.may_send_secrets()?;
        self.resign_by(token, self.client.deadline()).await
    }

    pub(super) async fn resign_by(
        &self,
        token: LeaderToken,
        deadline: Deadline,
    ) -> Result<Option<Resigned>, ClientError> {
        let call = Call::post(format!("/elections/{}/resign", self.room), &ResignRequest { leader_token: token });
        match self.client.caller.call(&call, deadline).await {
            Ok(answer) => Ok(Some(answer.body)),
            // Perhaps by an earlier try of this call, whose answer was lost.
            Err(ClientError::Refused(refusal)) if refusal.is(ErrorCode::LeaseNotCurrent) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
