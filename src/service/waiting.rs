//! Campaigns that wait for a room: in order of arrival on each node, woken by changes, never polling.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::time::Instant;

use super::{CampaignAnswer, Consistency, Decided, ResignRequest, RoomService, ServiceError, Tries};
use crate::domain::RoomId;

/// How long after a lease should have ended a waiter asks by itself: the change that should have woken it may
/// be held up on its way to this node.
const OVERDUE: Duration = Duration::from_millis(500);
/// How soon a waiter tries again when its cluster could not answer.
const RETRY_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// One queue for each room that somebody waits for on this node.
#[derive(Default)]
pub struct Queues {
    rooms: Mutex<HashMap<RoomId, Arc<tokio::sync::Mutex<()>>>>,
}

impl Queues {
    /// Returns when everybody who came before has won, given up or gone. Tokio's mutex is served in order.
    async fn come_first(&self, room: &RoomId) -> OwnedMutexGuard<()> {
        let queue = {
            let mut rooms = self.rooms.lock();
            rooms.retain(|_, queue| Arc::strong_count(queue) > 1);
            rooms.entry(room.clone()).or_default().clone()
        };
        queue.lock_owned().await
    }
}

impl RoomService {
    /// Campaigns until the room is won or the request's wait is over.
    pub(super) async fn campaign_waiting(&self, tries: &Arc<Tries>) -> Result<Decided<CampaignAnswer>, ServiceError> {
        let until = Instant::now() + tries.request.wait;
        let first = self.campaign_for_live_caller(tries).await?;
        if matches!(first.answer, CampaignAnswer::Won(_)) {
            return Ok(first);
        }
        match tokio::time::timeout_at(until, self.queues.come_first(&tries.request.room)).await {
            Ok(_turn) => self.campaign_in_turn(tries, until).await,
            Err(_) => self.try_if_heard(tries).await,
        }
    }

    /// Tries until the room is won, and once more when the time is over. A try that is under way at that moment is
    /// the last one: if it were left alone, it could win after its caller had been told that the room was lost.
    async fn campaign_in_turn(
        &self,
        tries: &Arc<Tries>,
        until: Instant,
    ) -> Result<Decided<CampaignAnswer>, ServiceError> {
        loop {
            // Before the try, so that a change between the two is not slept through.
            let mut watch = self.watch(&tries.request.room);
            watch.next().await;
            let answer = self.try_if_heard(tries).await;
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

    /// One more try. After one whose outcome is unknown it is first asked something that changes nothing: this node's
    /// questions may get to the raft leader, and the answers not back. It would then win the room each time that the
    /// lease has ended which it has won unheard, and keep everybody else out for as long as it waits.
    async fn try_if_heard(&self, tries: &Arc<Tries>) -> Result<Decided<CampaignAnswer>, ServiceError> {
        if tries.maybe_won() {
            self.view(&tries.request.room, Consistency::Linearizable).await?;
        }
        self.campaign_for_live_caller(tries).await
    }

    /// One try, on behalf of a caller who may go away meanwhile.
    ///
    /// Without a key nobody can ever hear of what it wins then, or finds that an earlier try has won, so it is given
    /// back. A caller with a key may have come again by then, and have been told that the lease is its own: taking it
    /// away would let a second holder in beside it. So that lease stays, and ends by itself if nobody renews it; and the
    /// try ends with its caller, or it could win once more after the caller has won elsewhere and resigned.
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
                tracing::debug!(%room, "the waiter has gone; its room is given back");
                let resign = ResignRequest { room, secret: holding.secret };
                if let Err(error) = service.resign(resign).await {
                    tracing::debug!(%error, "not given back; the lease will end by itself");
                }
            }
        });
        answer.await.unwrap_or(Err(ServiceError::OutcomeUnknown))
    }
}
