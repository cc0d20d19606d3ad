use std::time::Duration;

use super::*;
use crate::domain::{ContenderId, LeaseDuration, RoomId};
use crate::random::SystemRandom;

fn tries() -> Tries {
    let request = CampaignRequest {
        room: RoomId::new("nightly-report").unwrap(),
        contender: ContenderId::new("worker-a").unwrap(),
        metadata: None,
        lease_duration: LeaseDuration::DEFAULT,
        wait: Duration::from_secs(30),
        idempotency_key: None,
    };
    Tries::new(request, &SystemRandom)
}

fn decided(maybe_done_before: bool) -> Result<Decided<Outcome>, ServiceError> {
    Ok(Decided { answer: Outcome::Noted, decided_by: "n1".into(), maybe_done_before })
}

#[test]
fn an_unknown_outcome_stays_unknown_whatever_later_tries_answer() {
    let unavailable = || ServiceError::Unavailable { reason: String::new(), retry_after: Duration::ZERO };
    for unknown in [Err(ServiceError::OutcomeUnknown), decided(true)] {
        let tries = tries();
        for settled in [decided(false), Err(unavailable()), Err(ServiceError::NotHolder)] {
            tries.note(&settled);
            assert!(!tries.maybe_won());
        }
        tries.note(&unknown);
        assert!(tries.maybe_won());
        for settled in [decided(false), Err(unavailable())] {
            tries.note(&settled);
            assert!(tries.maybe_won());
        }
    }
}
