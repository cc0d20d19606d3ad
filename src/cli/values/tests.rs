use super::*;

#[test]
fn a_duration_without_a_unit_is_seconds() {
    assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(parse_duration("2"), parse_duration("2s"));
    assert!(parse_duration("soon").is_err());
}

#[test]
fn a_ttl_is_whole_seconds_within_the_limits() {
    assert_eq!(parse_ttl("30"), Ok(Duration::from_secs(30)));
    assert_eq!(parse_ttl("2m"), Ok(Duration::from_secs(120)));
    for bad in ["4s", "301", "5500ms", "soon", "-5"] {
        assert!(parse_ttl(bad).is_err(), "{bad}");
    }
}
