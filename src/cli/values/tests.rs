use super::*;

#[test]
fn a_duration_without_a_unit_is_seconds() {
    assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(parse_duration("2"), parse_duration("2s"));
    assert!(parse_duration("soon").is_err());
}

#[test]
fn a_ttl_is_whole_seconds_within_the_limits() {
    let ttl = |text: &str| text.parse::<Ttl>().map(Ttl::as_duration);
    assert_eq!(ttl("30"), Ok(Duration::from_secs(30)));
    assert_eq!(ttl("2m"), Ok(Duration::from_secs(120)));
    assert_eq!(ttl("4s"), Err("write whole seconds from 5s to 300s".to_owned()));
    for bad in ["301", "5500ms", "soon", "-5"] {
        assert!(ttl(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_default_ttl_can_be_typed() {
    assert_eq!(Ttl::default().to_string(), "30s");
    assert_eq!(Ttl::default().to_string().parse(), Ok(Ttl::default()));
}
