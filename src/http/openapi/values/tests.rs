use serde_json::Value;

use super::*;

fn schema_of<T: PartialSchema>() -> Value {
    serde_json::to_value(T::schema()).unwrap()
}

#[test]
fn lengths_are_those_of_the_domain() {
    fn check<T: PartialSchema>(is_valid: fn(&str) -> bool) {
        let schema = schema_of::<T>();
        let length = |name: &str| schema[name].as_u64().map(|length| usize::try_from(length).unwrap());
        let [min, max] = ["minLength", "maxLength"].map(length);
        let (min, max) = (min.unwrap_or(0), max.unwrap());
        assert!(is_valid(&"a".repeat(min)) && is_valid(&"a".repeat(max)), "{schema}");
        assert!(min == 0 || !is_valid(&"a".repeat(min - 1)), "{schema}");
        assert!(!is_valid(&"a".repeat(max + 1)), "{schema}");
    }
    check::<RoomId>(|text| RoomId::new(text).is_ok());
    check::<ContenderId>(|text| ContenderId::new(text).is_ok());
    check::<Metadata>(|text| Metadata::new(text).is_ok());
}

#[test]
fn numbers_have_the_limits_of_the_domain() {
    let ttl = schema_of::<LeaseDuration>();
    assert_eq!((&ttl["minimum"], &ttl["maximum"], &ttl["examples"]), (&json!(5), &json!(300), &json!([30])));
    let term = schema_of::<FencingToken>();
    assert_eq!((&term["minimum"], &term["maximum"]), (&json!(1), &json!((1_u64 << 53) - 1)));
}
