use super::*;
use crate::domain::ContenderId;

#[test]
fn the_name_of_a_process_is_valid_and_its_own() {
    let (one, other) = (own_name(), own_name());
    assert!(ContenderId::new(&one).is_ok(), "{one}");
    assert_ne!(one, other);
    assert!(one.contains(&format!(":{}:", std::process::id())));
}
