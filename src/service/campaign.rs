//! Campaigns: one try, or as many as the caller wants to wait for.
//!
//! Campaigns that wait for a room take turns in the order of their arrival at this node. A change of the room wakes the
//! first one. None of them polls.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::decide::Decided;
use super::error::ServiceError;
use super::holding::Holding;
use super::request::CampaignRequest;
use super::rooms::{Consistency, RoomService, unexpected};
use super::tries::Tries;
use crate::domain::{Campaign, Change, Nonce, Operation, Outcome, Refusal, RoomView};
use crate::random::random_bytes;

/// A waiting campaign tries again this long after the lease should have ended, even if no change has woken it. The
/// change may be delayed on its way to this node.
const OVERDUE: Duration = Duration::from_millis(500);
/// A waiting campaign tries again this long after the cluster could not answer.
const RETRY_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// The result of a campaign.
#[derive(Debug, Clone)]
pub enum CampaignAnswer {
    /// The caller holds the room.
    Won(Holding),
    /// The room is occupied. The holder may be the caller itself, if an earlier request without this key won.
    Follower(RoomView),
}

impl RoomService {
    /// Tries to get the room. Waits for it if the request says so.
    ///
    /// # Errors
    /// See [`ServiceError`]. It is no error if the room is occupied.
    pub async fn campaign(&self, request: CampaignRequest) -> Result<Decided<CampaignAnswer>, ServiceError> {
        let tries = Arc::new(Tries::new(request, &*self.random));
        let answer = match tries.request.wait.is_zero() {
            true => self.campaign_once(&tries).await,
            false => self.campaign_waiting(&tries).await,
        };
        match answer {
            // The last try changed nothing, but an earlier one may have won, or may still win.
            Err(ServiceError::Unavailable { .. }) if tries.maybe_won() => Err(ServiceError::OutcomeUnknown),
            answer => answer,
        }
    }

    /// One try.
    async fn campaign_once(&self, tries: &Tries) -> Result<Decided<CampaignAnswer>, ServiceError> {
        let Tries { request, key, .. } = tries;
        let CampaignRequest { room, contender, metadata, lease_duration, .. } = request;
        let nonce = Nonce(random_bytes(&*self.random));
        let secret = key.secret_for(room, contender, nonce);
        let operation = Operation::Change(Change::Campaign(Campaign {
            room: room.clone(),
            contender: contender.clone(),
            metadata: metadata.clone(),
            lease_duration: *lease_duration,
            secret_hash: secret.hash(),
            nonce,
        }));
        let result = self.decider.submit(operation, self.settings.request_deadline).await;
        tries.note(&result);
        result?.try_map(|outcome| match outcome {
            Outcome::Granted(view) => Ok(CampaignAnswer::Won(Holding::granted(view, secret))),
            Outcome::Occupied(view) => {
                // The holder may be the caller, by a request whose answer was lost.
                let own = view.lease.as_ref().and_then(|lease| key.recognise(room, contender, lease));
                Ok(match own {
                    Some(secret) => CampaignAnswer::Won(Holding::granted(view, secret)),
                    None => CampaignAnswer::Follower(view),
                })
            }
            Outcome::Refused(Refusal::CapacityReached) => Err(self.capacity_reached()),
            other => Err(unexpected("campaign", &other)),
        })
    }

    /// Tries until the room is won or the request's wait is over.
    async fn campaign_waiting(&self, tries: &Arc<Tries>) -> Result<Decided<CampaignAnswer>, ServiceError> {
        let until = Instant::now() + tries.request.wait;
        let first = self.campaign_for_live_caller(tries).await?;
        if matches!(first.answer, CampaignAnswer::Won(_)) {
            return Ok(first);
        }
        match tokio::time::timeout_at(until, self.queues.come_first(&tries.request.room)).await {
            Ok(_turn) => self.campaign_in_turn(tries, until).await,
            Err(_) => self.campaign_again(tries).await,
        }
    }

    /// Tries until the room is won, and once more when the wait is over. A try that is under way at that moment is the
    /// last one, and it is awaited. Otherwise it could win after its caller was told that the room is occupied.
    async fn campaign_in_turn(
        &self,
        tries: &Arc<Tries>,
        until: Instant,
    ) -> Result<Decided<CampaignAnswer>, ServiceError> {
        loop {
            // The watch begins before the try, so that no change between the two is missed.
            let mut watch = self.watch(&tries.request.room);
            watch.next().await;
            let answer = self.campaign_again(tries).await;
            if Instant::now() >= until {
                return answer;
            }
            let sleep = match answer {
                Ok(Decided { answer: CampaignAnswer::Follower(view), .. }) => {
                    view.lease.as_ref().map_or(OVERDUE, |lease| lease.retry_after(view.log_time) + OVERDUE)
                }
                Err(ServiceError::Unavailable { .. } | ServiceError::OutcomeUnknown) => RETRY_AFTER_FAILURE,
                other => return other,
            };
            let vacated = async {
                while let Some(view) = watch.next().await {
                    if view.lease.is_none() {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout_at(until.min(Instant::now() + sleep), vacated).await;
        }
    }

    /// One more try. If the outcome of an earlier one is unknown, it reads the room first, which changes nothing.
    ///
    /// Otherwise a node whose requests get through but whose answers do not would win the room again after each expiry,
    /// without knowing it, and block the room for its whole wait.
    async fn campaign_again(&self, tries: &Arc<Tries>) -> Result<Decided<CampaignAnswer>, ServiceError> {
        if tries.maybe_won() {
            self.view(&tries.request.room, Consistency::Linearizable).await?;
        }
        self.campaign_for_live_caller(tries).await
    }

    /// One try for a caller that may disconnect before the try ends.
    ///
    /// Without a key, nobody could ever use the lease that such a try wins, so it is given back. A caller with a key may
    /// have asked again by then, and may have been told that the lease is its own. If it were given back, a second
    /// holder could win beside that caller. So that lease stays, and it ends by itself if nobody renews it. The try of a
    /// caller with a key ends when its caller disconnects. Otherwise it could win again after the caller has won at
    /// another node and resigned.
    async fn campaign_for_live_caller(&self, tries: &Arc<Tries>) -> Result<Decided<CampaignAnswer>, ServiceError> {
        if tries.request.idempotency_key.is_some() {
            return self.campaign_once(tries).await;
        }
        let (caller, answer) = oneshot::channel();
        let (service, tries) = (self.clone(), tries.clone());
        tokio::spawn(async move {
            let result = service.campaign_once(&tries).await;
            let Err(unheard) = caller.send(result) else { return };
            if let Ok(Decided { answer: CampaignAnswer::Won(holding), .. }) = unheard {
                let room = tries.request.room.clone();
                tracing::debug!(%room, "the waiting caller has disconnected, so its room is given back");
                if let Err(error) = service.resign(room, &holding.secret).await {
                    tracing::debug!(%error, "the room was not given back; its lease will end by itself");
                }
            }
        });
        answer.await.unwrap_or(Err(ServiceError::OutcomeUnknown))
    }
}
