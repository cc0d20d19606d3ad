use super::super::handle::Client;
use super::*;

#[test]
fn names_are_checked_before_anything_is_sent() {
    let client = Client::builder().build().unwrap();
    assert!(matches!(client.election("short"), Err(ClientError::Invalid(_))));
    let election = client.election("nightly-report").unwrap();
    assert!(matches!(election.campaign("no spaces"), Err(ClientError::Invalid(_))));
}
