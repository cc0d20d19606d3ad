use super::*;

#[test]
fn urls_are_checked_when_the_client_is_built() {
    for good in ["http://127.0.0.1:7400", "http://localhost:7400/", "http://[::1]:7400"] {
        assert!(Client::builder().urls([good]).build().is_ok(), "{good}");
    }
    for bad in ["https://127.0.0.1", "127.0.0.1:7400", "ftp://a", "http://user:pw@a", "http://a/?x", ""] {
        assert!(Client::builder().urls([bad]).build().is_err(), "{bad}");
    }
    assert_eq!(Client::builder().build().unwrap().server(), "http://127.0.0.1:7400");
}

#[test]
fn tokens_travel_unencrypted_to_another_machine_only_if_allowed() {
    let far = Client::builder().urls(["http://127.0.0.1:7400", "http://10.1.2.3:7400"]);
    let election = far.build().unwrap().election("nightly-report").unwrap();
    let error = election.campaign("worker-a").err().unwrap();
    assert!(matches!(&error, ClientError::Cleartext { host } if host == "10.1.2.3"), "{error}");
    let allowed = Client::builder().urls(["http://10.1.2.3:7400"]).allow_insecure_http(true);
    assert!(allowed.build().unwrap().election("nightly-report").unwrap().campaign("worker-a").is_ok());
    let with_token = Client::builder().urls(["http://example.com"]).access_token("a-token".to_owned().into());
    assert!(with_token.build().is_err());
}
