//! The requests about one room: their paths, their bodies, and what their answers mean.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::caller::{Answer, Call, Caller};
use super::error::ClientError;
use super::holder_clock::Deadline;
use crate::domain::RoomId;
use crate::wire::{
    CampaignRequest, CampaignResponse, ErrorCode, LeaderToken, RenewRequest, ResignRequest, Resigned, RoomStatus, Won,
};

/// Sends the requests about one room.
#[derive(Clone)]
pub(super) struct RoomCalls {
    pub caller: Arc<Caller>,
    pub room: RoomId,
}

impl RoomCalls {
    /// How the room stands now, by a linearizable read.
    pub async fn status(&self) -> Result<RoomStatus, ClientError> {
        let call = Call::get(format!("/elections/{}", self.room));
        Ok(self.caller.call(&call, self.caller.deadline()).await?.body)
    }

    /// One campaign. A node may hold the request for `long_poll` until the room is vacant.
    pub async fn campaign(
        &self,
        request: &CampaignRequest,
        idempotency_key: &SecretString,
        long_poll: Duration,
    ) -> Result<Answer<CampaignResponse>, ClientError> {
        let wait_seconds = u8::try_from(long_poll.as_secs()).ok().filter(|seconds| *seconds > 0);
        let request = CampaignRequest { wait_seconds, ..request.clone() };
        let call = Call {
            idempotency_key: Some(idempotency_key),
            long_poll,
            ..Call::post(format!("/elections/{}/campaign", self.room), &request)
        };
        let deadline = Deadline::new(self.caller.clock.now(), self.caller.request_deadline + long_poll);
        self.caller.call(&call, deadline).await
    }

    /// One renewal, for as long as the lease was won for.
    pub async fn renew(&self, token: &LeaderToken, deadline: Deadline) -> Result<Answer<Won>, ClientError> {
        let request = RenewRequest { leader_token: token.clone(), ttl_seconds: None, metadata: None };
        let call = Call::post(format!("/elections/{}/renew", self.room), &request);
        self.caller.call(&call, deadline).await
    }

    /// Ends the lease of this token. `None` if the lease had ended already.
    pub async fn resign(&self, token: LeaderToken, deadline: Deadline) -> Result<Option<Resigned>, ClientError> {
        let call = Call::post(format!("/elections/{}/resign", self.room), &ResignRequest { leader_token: token });
        match self.caller.call(&call, deadline).await {
            Ok(answer) => Ok(Some(answer.body)),
            // An earlier try of this call may have ended the lease, and its answer was lost.
            Err(ClientError::Rejected(rejection)) if rejection.is(ErrorCode::LeaseNotCurrent) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The request that opens a stream of the room's events.
    pub fn watch(&self) -> Call<'static> {
        Call::get(format!("/elections/{}/watch", self.room))
    }
}
