use super::*;

fn room() -> RoomId {
    RoomId::new("nightly-report").unwrap()
}

fn contender(name: &str) -> ContenderId {
    ContenderId::new(name).unwrap()
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::from_header(text.as_bytes()).unwrap()
}

#[test]
fn a_secret_is_read_back_from_its_text() {
    let secret = key("0123456789abcdef").secret_for(&room(), &contender("a"), Nonce([7; 16]));
    let text = secret.expose_text();
    assert_eq!(text.len(), 43);
    assert!(LeaseSecret::from_text(&text).unwrap().hash().matches(&secret.hash()));
}

#[test]
fn malformed_secrets_and_keys_are_errors() {
    for bad in ["", "short", &"a".repeat(44), &"=".repeat(43), &"ä".repeat(43)] {
        assert!(LeaseSecret::from_text(bad).is_err(), "{bad}");
    }
    for bad in ["", "fifteen-chars--", &"k".repeat(129), "with a space inside", "tab\tinside-the-key"] {
        assert!(IdempotencyKey::from_header(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn key_room_contender_and_nonce_all_matter() {
    let secret = |key_text: &str, room_text: &str, name: &str, nonce| {
        key(key_text).secret_for(&RoomId::new(room_text).unwrap(), &contender(name), Nonce([nonce; 16])).hash()
    };
    let one = secret("0123456789abcdef", "room-number-1", "a", 1);
    assert!(one.matches(&secret("0123456789abcdef", "room-number-1", "a", 1)));
    assert!(!one.matches(&secret("0123456789abcdeX", "room-number-1", "a", 1)));
    assert!(!one.matches(&secret("0123456789abcdef", "room-number-2", "a", 1)));
    assert!(!one.matches(&secret("0123456789abcdef", "room-number-1", "b", 1)));
    assert!(!one.matches(&secret("0123456789abcdef", "room-number-1", "a", 2)));
}

#[test]
fn nothing_secret_shows_in_debug_output() {
    let secret = key("0123456789abcdef").secret_for(&room(), &contender("a"), Nonce([7; 16]));
    assert_eq!(format!("{secret:?} {:?}", key("0123456789abcdef")), "LeaseSecret(…) IdempotencyKey(…)");
}
