//! What an answer means for the history.

use serde_json::Value;

use super::history::{Answer, Asked, MILLI, Seen};

pub fn classify(asked: Asked, status: u16, body: Option<&Value>) -> Answer {
    let Some(body) = body else { return Answer::Unknown };
    match status {
        200..=299 => seen(asked, body).map_or(Answer::Unknown, Answer::Ok),
        404 if body["code"] == "lease_not_current" => Answer::NotHolder,
        400 | 401 | 403 | 404 | 409 | 429 => Answer::No,
        503 if body["code"] == "unavailable" => Answer::No,
        _ => Answer::Unknown,
    }
}

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
    Some(Seen::Held { holder: body["leader"]["candidate_id"].as_str()?.to_owned(), term })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: u16, body: Value) -> Answer {
        classify(Asked::Renew { term: 5 }, status, Some(&body))
    }

    #[test]
    fn only_a_documented_no_is_a_no() {
        for status in [400, 401, 403, 404, 409, 429] {
            assert_eq!(of(status, json!({"code": "x"})), Answer::No);
        }
        assert_eq!(of(404, json!({"code": "lease_not_current"})), Answer::NotHolder);
        assert_eq!(of(503, json!({"code": "unavailable"})), Answer::No);
    }

    #[test]
    fn what_may_have_been_done_is_unknown() {
        assert_eq!(of(503, json!({"code": "outcome_unknown"})), Answer::Unknown);
        assert_eq!(of(500, json!({"code": "internal_error"})), Answer::Unknown);
        assert_eq!(of(502, json!({})), Answer::Unknown);
        assert_eq!(of(200, json!({"status": "leader"})), Answer::Unknown);
        assert_eq!(classify(Asked::Campaign, 0, None), Answer::Unknown);
    }

    #[test]
    fn what_is_complete_is_understood() {
        let body = json!({"status": "leader", "leader": {"candidate_id": "a", "term": 7}, "leader_token": "t", "valid_for_ms": 5});
        assert_eq!(of(200, body), Answer::Ok(Seen::Won { term: 7, valid_for: 5 * MILLI }));
        let resigned = classify(Asked::Resign { term: 7 }, 200, Some(&json!({"status": "vacant", "previous_term": 7})));
        assert_eq!(resigned, Answer::Ok(Seen::Resigned { term: 7 }));
        assert_eq!(of(200, json!({"status": "vacant"})), Answer::Ok(Seen::Vacant));
    }
}
