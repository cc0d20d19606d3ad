use super::*;
use crate::domain::ContenderId;

#[test]
fn the_default_name_is_valid_and_differs_for_each_campaign() {
    let (one, other) = (own_name(), own_name());
    assert!(ContenderId::new(&one).is_ok(), "{one}");
    assert_ne!(one, other);
    assert!(one.contains(&format!(":{}:", std::process::id())));
}
