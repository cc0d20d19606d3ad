//! A client of one cluster.

use std::sync::Arc;

use super::caller::{Call, Caller};
use super::election::Election;
use super::error::ClientError;
use super::room_calls::RoomCalls;
use crate::domain::RoomId;
use crate::wire::RoomCreated;

/// A client of one cluster. Clones are cheap: they share the connections, and the choice of the node to ask first.
#[derive(Clone)]
pub struct Client {
    pub(super) caller: Arc<Caller>,
}

impl Client {
    /// The election for `room`. Nothing is sent, and the room need not have been created.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] if `room` is not 8 to 64 characters of `A-Z a-z 0-9 _ -`.
    pub fn election(&self, room: &str) -> Result<Election, ClientError> {
        Ok(Election { calls: RoomCalls { caller: self.caller.clone(), room: RoomId::new(room)? } })
    }

    /// Creates a room with an id that nobody can guess.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn create(&self) -> Result<RoomCreated, ClientError> {
        let call = Call { body: None, ..Call::post("/elections".into(), &()) };
        Ok(self.caller.call(&call, self.caller.deadline()).await?.body)
    }

    /// The URL of the node that is asked first, which is the node that answered last.
    pub fn server(&self) -> &str {
        self.caller.current_server()
    }
}
