use proptest::prelude::*;
use serde_json::json;

use super::*;

fn campaign(body: Value) -> Result<CampaignRequest, InvalidRequest> {
    CampaignRequest::from_json(body.to_string().as_bytes())
}

fn ttl(text: &str) -> Result<Option<LeaseDuration>, InvalidRequest> {
    let body = format!(r#"{{"candidate_id":"a","ttl_seconds":{text}}}"#);
    CampaignRequest::from_json(body.as_bytes()).map(|request| request.ttl_seconds)
}

fn is_input(error: &InvalidRequest) -> bool {
    matches!(error, InvalidRequest::Input(_))
}

#[test]
fn a_campaign_needs_only_a_candidate() {
    let request = campaign(json!({"candidate_id": "worker-a", "unknown": [1, {"deep": null}]})).unwrap();
    assert_eq!(request.lease_duration(), LeaseDuration::DEFAULT);
    assert_eq!((request.metadata.clone(), request.wait()), (None, Duration::ZERO));
    assert_eq!(serde_json::to_value(request).unwrap(), json!({"candidate_id": "worker-a"}));
}

#[test]
fn the_server_reads_what_a_client_writes() {
    let body = json!({"candidate_id": "a", "ttl_seconds": 5, "metadata": "ü\n", "wait_seconds": 60});
    let request = campaign(body.clone()).unwrap();
    assert_eq!(serde_json::to_value(&request).unwrap(), body);
}

#[test]
fn a_whole_ttl_out_of_range_has_its_own_code() {
    for good in ["5", "300", "30.0", "3e1", "null"] {
        assert!(ttl(good).is_ok(), "{good}");
    }
    for outside in ["4", "301", "0", "-0", "-1", "-9223372036854775809", "18446744073709551616", "1e300", "4.0"] {
        assert_eq!(ttl(outside), Err(InvalidRequest::Ttl), "{outside}");
    }
    for wrong in ["30.5", "\"30\"", "true", "[30]", "{}", "1e309", "0x1e", "NaN", ""] {
        assert!(is_input(&ttl(wrong).unwrap_err()), "{wrong}");
    }
}

#[test]
fn a_wait_out_of_range_is_invalid_input() {
    for bad in [json!(61), json!(-1), json!(1.5), json!("1"), json!(1e300)] {
        assert!(is_input(&campaign(json!({"candidate_id": "a", "wait_seconds": bad})).unwrap_err()), "{bad}");
    }
}

#[test]
fn a_body_that_is_not_an_object_is_invalid_input() {
    for bad in [
        "",
        " ",
        "null",
        "[\"a\"]",
        "\"a\"",
        "{",
        "{}x",
        "{\"candidate_id\":\"a\"} {}",
        "{'candidate_id':'a'}",
        "{\"candidate_id\":\"\\ud800\"}",
    ] {
        assert!(is_input(&CampaignRequest::from_json(bad.as_bytes()).unwrap_err()), "{bad}");
    }
    assert!(is_input(&CampaignRequest::from_json(b"{\"candidate_id\":\"\xff\"}").unwrap_err()));
    let deep = "[".repeat(10_000);
    assert!(is_input(&CampaignRequest::from_json(deep.as_bytes()).unwrap_err()), "deep nesting");
}

#[test]
fn a_known_field_must_be_given_only_once() {
    let token = "A".repeat(43);
    for (name, value) in
        [("candidate_id", "\"a\""), ("ttl_seconds", "30"), ("metadata", "\"m\""), ("wait_seconds", "null")]
    {
        let body = format!("{{\"candidate_id\":\"a\",\"{name}\":{value},\"{name}\":{value}}}");
        let expected = InvalidRequest::Input(format!("{name} must be given only once"));
        assert_eq!(CampaignRequest::from_json(body.as_bytes()).unwrap_err(), expected);
    }
    let twice = format!("{{\"leader_token\":\"{token}\",\"leader_token\":\"{token}\"}}");
    let expected = InvalidRequest::Input("leader_token must be given only once".to_owned());
    assert_eq!(RenewRequest::from_json(twice.as_bytes()).unwrap_err(), expected);
    assert_eq!(ResignRequest::from_json(twice.as_bytes()).unwrap_err(), expected);
    let unlisted = br#"{"candidate_id":"a","x":1,"x":2,"y":{"candidate_id":1,"candidate_id":2}}"#;
    assert!(CampaignRequest::from_json(unlisted).is_ok(), "an unknown field may occur twice");
}

#[test]
fn no_message_quotes_the_request() {
    let secret = "mJ9r1cQ5bYb6m3lVgq0w3l2f9Jc0a1s5d8h7k4n2x6E";
    for body in [
        json!({"leader_token": [secret]}),
        json!({"leader_token": {"x": secret}}),
        json!({"leader_token": secret, "ttl_seconds": secret}),
        json!({"leader_token": secret, "metadata": [secret]}),
        json!([secret]),
        json!(secret),
    ] {
        let error = RenewRequest::from_json(body.to_string().as_bytes()).unwrap_err();
        assert!(!error.to_string().contains(secret), "{error}");
    }
    let error = RenewRequest::from_json(format!("{{\"leader_token\":\"{secret}\"").as_bytes()).unwrap_err();
    assert!(!error.to_string().contains(secret), "{error}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(body in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = CampaignRequest::from_json(&body);
        let _ = RenewRequest::from_json(&body);
        let _ = ResignRequest::from_json(&body);
    }

    #[test]
    fn no_values_make_a_reader_panic(
        values in prop::collection::btree_map(
            prop::sample::select(vec!["candidate_id", "ttl_seconds", "metadata", "wait_seconds", "leader_token"]),
            any_json(),
            0..5,
        ),
    ) {
        let body = serde_json::to_vec(&values).unwrap();
        let _ = CampaignRequest::from_json(&body);
        let _ = RenewRequest::from_json(&body);
        let _ = ResignRequest::from_json(&body);
    }
}
