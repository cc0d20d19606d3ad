//! Decides what a response means: whether the operation was done, was not done, or may have been done.

use serde_json::Value;

use super::history::{Answer, Asked, MILLI, Seen};

/// Only a documented response counts as a success or as a certain failure. Everything else is unknown.
pub fn classify(asked: Asked, status: u16, body: Option<&Value>) -> Answer {
    let Some(body) = body else { return Answer::Unknown };
    match status {
        200..=299 => seen(asked, body).map_or(Answer::Unknown, Answer::Ok),
        404 if body["code"] == "lease_not_current" => Answer::NotHolder,
        400 | 401 | 403 | 404 | 409 | 429 => Answer::NothingDone,
        503 if body["code"] == "unavailable" => Answer::NothingDone,
        _ => Answer::Unknown,
    }
}

/// What a successful response says, if it is complete.
fn seen(asked: Asked, body: &Value) -> Option<Seen> {
    if let Asked::Resign { .. } = asked {
        return Some(Seen::Resigned { term: body["previous_term"].as_u64()? });
    }
    if body["status"] == "vacant" {
        return Some(Seen::Vacant);
    }
    let term = body["leader"]["term"].as_u64()?;
    if body["leader_token"].is_string() {
        return Some(Seen::Won { term, valid_for: body["valid_for_ms"].as_u64()? * MILLI });
    }
    Some(Seen::Occupied { holder: body["leader"]["candidate_id"].as_str()?.to_owned(), term })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn renewal(status: u16, body: Value) -> Answer {
        classify(Asked::Renew { term: 5 }, status, Some(&body))
    }

    #[test]
    fn only_a_documented_failure_proves_that_nothing_was_done() {
        for status in [400, 401, 403, 404, 409, 429] {
            assert_eq!(renewal(status, json!({"code": "x"})), Answer::NothingDone);
        }
        assert_eq!(renewal(404, json!({"code": "lease_not_current"})), Answer::NotHolder);
        assert_eq!(renewal(503, json!({"code": "unavailable"})), Answer::NothingDone);
    }

    #[test]
    fn every_other_failure_is_unknown() {
        assert_eq!(renewal(503, json!({"code": "outcome_unknown"})), Answer::Unknown);
        assert_eq!(renewal(500, json!({"code": "internal_error"})), Answer::Unknown);
        assert_eq!(renewal(502, json!({})), Answer::Unknown);
        assert_eq!(renewal(200, json!({"status": "leader"})), Answer::Unknown);
        assert_eq!(classify(Asked::Campaign, 0, None), Answer::Unknown);
    }

    #[test]
    fn a_complete_success_is_understood() {
        let body = json!({"status": "leader", "leader": {"candidate_id": "a", "term": 7}, "leader_token": "t", "valid_for_ms": 5});
        assert_eq!(renewal(200, body), Answer::Ok(Seen::Won { term: 7, valid_for: 5 * MILLI }));
        let resigned = classify(Asked::Resign { term: 7 }, 200, Some(&json!({"status": "vacant", "previous_term": 7})));
        assert_eq!(resigned, Answer::Ok(Seen::Resigned { term: 7 }));
        assert_eq!(renewal(200, json!({"status": "vacant"})), Answer::Ok(Seen::Vacant));
    }
}
