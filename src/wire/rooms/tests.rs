use proptest::prelude::*;
use serde_json::json;
use zeroize::Zeroizing;

use super::*;
use crate::domain::{Campaign, Lease, LeaseDuration, LogTime, Nonce, SecretHash, WallAnchor, WallTime};

fn room() -> RoomId {
    RoomId::new("nightly-report").unwrap()
}

/// worker-a holds the room for 30 s from log time 1,000, which is 2026-11-29T12:00:00.123Z.
fn occupied(metadata: Option<&str>) -> RoomView {
    let campaign = Campaign {
        room: room(),
        contender: ContenderId::new("worker-a").unwrap(),
        metadata: metadata.map(|text| Metadata::new(text).unwrap()),
        lease_duration: LeaseDuration::from_secs(30).unwrap(),
        secret_hash: SecretHash([1; 32]),
        nonce: Nonce([2; 16]),
    };
    RoomView {
        lease: Some(Lease::grant(&campaign, FencingToken(1842), LogTime(1_000))),
        log_time: LogTime(1_000),
        wall_anchor: Some(WallAnchor { log_time: LogTime(1_000), wall_time: WallTime(1_795_953_600_123) }),
    }
}

fn vacant() -> RoomView {
    RoomView { lease: None, ..occupied(None) }
}

fn token() -> LeaderToken {
    LeaderToken::new(Zeroizing::new("s3cret".repeat(7) + "!"))
}

#[test]
fn a_won_campaign_has_the_shape_of_the_contract() {
    let won = Won::new(room(), &occupied(Some("here")), token(), Duration::from_millis(30_000)).unwrap();
    let expected = json!({
        "status": "leader", "election_id": "nightly-report",
        "leader": {
            "candidate_id": "worker-a", "metadata": "here", "term": 1842, "expires_at": "2026-11-29T12:00:30.123Z",
        },
        "leader_token": token().expose_text(), "renew_after_ms": 15_000, "valid_for_ms": 30_000,
    });
    assert_eq!(serde_json::to_value(CampaignResponse::Won(won)).unwrap(), expected);
    assert!(matches!(serde_json::from_value(expected).unwrap(), CampaignResponse::Won(_)));
}

#[test]
fn a_follower_has_the_shape_of_the_contract() {
    let expected = json!({
        "status": "follower", "election_id": "nightly-report",
        "leader": {"candidate_id": "worker-a", "term": 1842, "expires_at": "2026-11-29T12:00:30.123Z"},
        "retry_after_ms": 30_040,
    });
    let follower = CampaignResponse::Follower(Follower::new(room(), &occupied(None)));
    assert_eq!(serde_json::to_value(follower).unwrap(), expected);
    assert!(matches!(serde_json::from_value(expected).unwrap(), CampaignResponse::Follower(_)));
}

#[test]
fn a_vacant_room_has_no_leader_field_but_its_event_has_null() {
    assert_eq!(
        serde_json::to_value(RoomStatus::new(room(), &vacant())).unwrap(),
        json!({"election_id": "nightly-report", "status": "vacant", "retry_after_ms": 0})
    );
    assert_eq!(
        serde_json::to_value(WatchEvent::new(room(), &vacant())).unwrap(),
        json!({"schema_version": 1, "election_id": "nightly-report", "status": "vacant", "leader": null,
            "retry_after_ms": 0, "observed_at": "2026-11-29T12:00:00.123Z"})
    );
}

#[test]
fn a_vacant_room_makes_no_winner() {
    assert!(Won::new(room(), &vacant(), token(), Duration::ZERO).is_none());
}

#[test]
fn a_won_campaign_shows_no_token_in_debug_output() {
    let won = Won::new(room(), &occupied(None), token(), Duration::ZERO).unwrap();
    let shown = format!("{won:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

proptest! {
    #[test]
    fn no_view_makes_a_shape_panic(
        promised_until: u64, deadline: u64, log_time: u64, anchor: (u64, u64), has_anchor: bool, valid_for: u64,
    ) {
        let mut view = occupied(None);
        view.log_time = LogTime(log_time);
        view.wall_anchor = has_anchor
            .then_some(WallAnchor { log_time: LogTime(anchor.0), wall_time: WallTime(anchor.1) });
        if let Some(lease) = &mut view.lease {
            (lease.promised_until, lease.deadline) = (LogTime(promised_until), LogTime(deadline));
        }
        let won = Won::new(room(), &view, token(), Duration::from_secs(valid_for)).unwrap();
        prop_assert_eq!(won.leader.expires_at.len(), 24);
        prop_assert_eq!(WatchEvent::new(room(), &view).observed_at.len(), 24);
    }
}
