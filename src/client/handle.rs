//! A client of one cluster.

use std::sync::Arc;
use std::time::Duration;

use super::caller::{Call, Caller};
use super::election::Election;
use super::error::ClientError;
use super::holder_clock::Deadline;
use crate::domain::RoomId;
use crate::wire::RoomCreated;

/// A handle to a cluster. Clones share connections, and which node is asked first.
#[derive(Clone)]
pub struct Client {
    pub(super) caller: Arc<Caller>,
    pub(super) request_deadline: Duration,
    /// To which machine a token would go in clear, if that isn't allowed.
    pub(super) exposed_host: Option<String>,
}

impl Client {
    /// The election of a room.
    ///
    /// # Errors
    /// If `room` isn't 8 to 64 characters of `A-Z a-z 0-9 _ -`.
    pub fn election(&self, room: &str) -> Result<Election, ClientError> {
        Ok(Election { client: self.clone(), room: RoomId::new(room)? })
    }

    /// Makes a room with an id that nobody can guess.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn create(&self) -> Result<RoomCreated, ClientError> {
        let call = Call { body: None, ..Call::post("/elections".into(), &()) };
        Ok(self.caller.call(&call, self.deadline()).await?.body)
    }

    /// The node that is asked first: the one that answered last.
    pub fn server(&self) -> &str {
        self.caller.current_server()
    }

    pub(super) fn deadline(&self) -> Deadline {
        Deadline::new(self.caller.clock.now(), self.request_deadline)
    }

    pub(super) fn may_send_secrets(&self) -> Result<(), ClientError> {
        match self.exposed_host.clone() {
            None => Ok(()),
            Some(host) => Err(ClientError::Cleartext { host }),
        }
    }
}
