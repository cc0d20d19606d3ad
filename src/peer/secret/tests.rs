use super::*;

#[test]
fn only_the_right_secret_is_proven() {
    let secret = ClusterSecret::new("correct horse battery".to_owned().into());
    let other = ClusterSecret::new("correct horse batterz".to_owned().into());
    assert!(secret.is_proven_by(Some(secret.proof().as_bytes())));
    assert!(!secret.is_proven_by(Some(other.proof().as_bytes())));
    assert!(!secret.is_proven_by(Some(b"Bearer correct horse battery")));
    assert!(!secret.is_proven_by(Some(b"")));
    assert!(!secret.is_proven_by(None));
}
