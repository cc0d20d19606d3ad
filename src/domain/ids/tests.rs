use super::*;

#[test]
fn room_ids_are_checked_at_both_ends() {
    for good in ["12345678", &"a".repeat(64), "AZaz09_-"] {
        assert!(RoomId::new(good).is_ok(), "{good}");
    }
    for bad in ["", "1234567", &"a".repeat(65), "with space", "über-uns", "a/b/c/d/e", "nul\0nul\0"] {
        assert!(RoomId::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn contender_ids_are_checked_at_both_ends() {
    for good in ["a", &"b".repeat(64), "host:7.a_b@c-d"] {
        assert!(ContenderId::new(good).is_ok(), "{good}");
    }
    for bad in ["", &"b".repeat(65), "a b", "a/b", "ä", "a\n"] {
        assert!(ContenderId::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn metadata_is_bounded_in_characters_and_in_bytes() {
    assert!(Metadata::new("").is_ok());
    assert!(Metadata::new(&"𝄞".repeat(1024)).is_ok(), "4,096 bytes in 1,024 characters");
    assert!(Metadata::new(&"a".repeat(1025)).is_err());
}

#[test]
fn an_invalid_id_does_not_deserialize() {
    assert!(serde_json::from_str::<RoomId>("\"short\"").is_err());
    assert!(serde_json::from_str::<RoomId>("\"long-enough\"").is_ok());
}

#[test]
fn secrets_hashes_and_nonces_do_not_show_in_debug_output() {
    assert!(!format!("{:?}", SecretHash([0xab; 32])).contains("ab"));
    assert!(!format!("{:?}", Nonce([171; 16])).contains("171"));
}
